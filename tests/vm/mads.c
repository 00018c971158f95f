// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mads.c - management datagrams that are wrong, sent by a process through ib_umad.
 *
 *	mads /dev/infiniband/umadN LID rows		those of the table below
 *	mads /dev/infiniband/umadN LID random SEED N	N of them, drawn by lot
 *
 * LID is the port's own. What must not be answered is followed by something
 * good, whose answer has to be the next that comes. scripts/guest-program builds
 * it for a suite.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BASE_VERSION	1
#define PERMISSIVE_LID	0xffff
#define DIRECTION	0x8000
/* Longer than any test: ib_umad is not to tell of what has no answer. */
#define FOREVER_MS	3600000
#define MOST_PATCHES	6
/* Of random datagrams, so many follow each other before something good does. */
#define BURST		32

enum qp { SMI, GSI, QPS };
enum mgmt_class { SUBN = 0x01, SA = 0x03, PERF = 0x04, CM = 0x07, VENDOR = 0x30,
		  NOBODYS = 0x77, DIRECTED = 0x81 };
enum method { GET = 0x01, SET = 0x02, SEND = 0x03, TRAP = 0x05, TRAP_REPRESS = 0x07,
	      GET_TABLE = 0x12, RESPONSE = 0x80 };
enum attribute { CLASS_PORT_INFO = 0x01, CM_REQ = 0x10, NODE_INFO = 0x11, PORT_COUNTERS = 0x12,
		 GUID_INFO = 0x14, PORT_INFO = 0x15, PKEY_TABLE = 0x16, SM_INFO = 0x20,
		 PATH_RECORD = 0x35 };

/* What is to come of a datagram: an answer with this status, */
enum { GOOD = 0, BAD_VERSION = 0x4, BAD_METHOD = 0x8, BAD_ATTRIBUTE = 0xc, BAD_VALUE = 0x1c,
       /* nothing, or the refusal by ib_umad to send it. */
       NO_ANSWER = 0x10000, REFUSED };

struct mad {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status;
	uint8_t hop_ptr, hop_cnt;
	uint64_t tid;
	uint16_t attr_id, reserved;
	uint32_t attr_mod;
	union {
		struct {
			uint64_t mkey;
			uint16_t dr_slid, dr_dlid;
			uint8_t reserved[28], data[64], initial_path[64], return_path[64];
		} smp;
		struct {
			uint8_t version, type, flags, status;
		} rmpp;
		uint8_t rest[232];
	};
};
_Static_assert(sizeof(struct mad) == 256, "a datagram has 256 bytes");

struct packet {
	struct ib_user_mad_hdr hdr;
	struct mad mad;
};

/* Values are big-endian, as all of a datagram is. */
struct patch {
	size_t offset, size;
	uint64_t value;
};

#define IS(field, value) \
	{ offsetof(struct packet, field), sizeof(((struct packet *)0)->field), value }

#define BY_LID	IS(mad.mgmt_class, DIRECTED)
#define ROUTE	BY_LID, IS(hdr.lid, PERMISSIVE_LID), IS(mad.smp.dr_slid, PERMISSIVE_LID), \
		IS(mad.smp.dr_dlid, PERMISSIVE_LID)

/* How one differs from Get(NodeInfo) to queue pair 0 or Get(ClassPortInfo) to 1. */
static const struct row {
	const char *name;
	enum qp qp;
	int expected;
	struct patch patches[MOST_PATCHES];
	size_t bytes;
} rows[] = {
	/* Versions */
	{ "base version 0", SMI, NO_ANSWER, { IS(mad.base_version, 0) } },
	{ "base version 255", GSI, NO_ANSWER, { IS(mad.base_version, 255) } },
	{ "class version 0", SMI, BAD_VERSION, { IS(mad.class_version, 0) } },
	{ "class version 7", SMI, BAD_VERSION, { IS(mad.class_version, 7) } },
	{ "class version 255", GSI, BAD_VERSION, { IS(mad.class_version, 255) } },
	/* Classes */
	{ "nobody's class", GSI, BAD_ATTRIBUTE, { IS(mad.mgmt_class, NOBODYS) } },
	{ "a vendor's class", GSI, BAD_ATTRIBUTE, { IS(mad.mgmt_class, VENDOR) } },
	{ "no subnet administrator", GSI, BAD_ATTRIBUTE,
	  { IS(mad.mgmt_class, SA), IS(mad.class_version, 2), IS(mad.attr_id, PATH_RECORD) } },
	{ "a request of ib_cm that is empty", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, CM), IS(mad.class_version, 2), IS(mad.method, SEND),
	    IS(mad.attr_id, CM_REQ) } },
	{ "a request of ib_cm as Get", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, CM), IS(mad.class_version, 2), IS(mad.attr_id, CM_REQ) } },
	/* Methods */
	{ "method 0", SMI, BAD_METHOD, { IS(mad.method, 0) } },
	{ "GetTable of subnet management", SMI, BAD_METHOD, { IS(mad.method, GET_TABLE) } },
	{ "Send of performance management", GSI, BAD_METHOD, { IS(mad.method, SEND) } },
	{ "an answer to nothing", SMI, NO_ANSWER, { IS(mad.method, GET | RESPONSE) } },
	{ "an answer to nothing", GSI, NO_ANSWER, { IS(mad.method, GET | RESPONSE) } },
	{ "a trap", SMI, NO_ANSWER, { IS(mad.method, TRAP) } },
	{ "a trap", GSI, NO_ANSWER, { IS(mad.method, TRAP) } },
	{ "the end of a trap", SMI, NO_ANSWER, { IS(mad.method, TRAP_REPRESS) } },
	/* Attributes */
	{ "attribute 0xff77", SMI, BAD_ATTRIBUTE, { IS(mad.attr_id, 0xff77) } },
	{ "attribute 0", GSI, BAD_ATTRIBUTE, { IS(mad.attr_id, 0) } },
	{ "SMInfo of no subnet manager", SMI, BAD_ATTRIBUTE, { IS(mad.attr_id, SM_INFO) } },
	{ "Set of what can only be read", SMI, BAD_ATTRIBUTE, { IS(mad.method, SET) } },
	{ "Set of what can only be read", GSI, BAD_ATTRIBUTE, { IS(mad.method, SET) } },
	{ "NodeInfo, modifier 1", SMI, BAD_VALUE, { IS(mad.attr_mod, 1) } },
	{ "PortInfo of port 2", SMI, BAD_VALUE, { IS(mad.attr_id, PORT_INFO), IS(mad.attr_mod, 2) } },
	{ "GUIDInfo, block 2", SMI, BAD_VALUE, { IS(mad.attr_id, GUID_INFO), IS(mad.attr_mod, 2) } },
	{ "GUIDInfo, the last block there can be", SMI, BAD_VALUE,
	  { IS(mad.attr_id, GUID_INFO), IS(mad.attr_mod, ~0u) } },
	{ "P_KeyTable, block 1", SMI, BAD_VALUE,
	  { IS(mad.attr_id, PKEY_TABLE), IS(mad.attr_mod, 1) } },
	{ "Set(P_KeyTable), block 1", SMI, BAD_VALUE,
	  { IS(mad.method, SET), IS(mad.attr_id, PKEY_TABLE), IS(mad.attr_mod, 1) } },
	{ "Set(PortInfo), LID 0", SMI, BAD_VALUE,
	  { IS(mad.method, SET), IS(mad.attr_id, PORT_INFO) } },
	{ "counters of port 0", GSI, BAD_VALUE, { IS(mad.attr_id, PORT_COUNTERS) } },
	/* What does not matter */
	{ "status bits in a request", SMI, GOOD, { IS(mad.status, 0x7fff) } },
	{ "status bits in a request", GSI, GOOD, { IS(mad.status, 0xffff) } },
	{ "an M_Key", SMI, GOOD, { IS(mad.smp.mkey, 0x123456789abcdef0) } },
	{ "RMPP flags where there is no RMPP", GSI, GOOD,
	  { IS(mad.rmpp.version, 1), IS(mad.rmpp.type, 1), IS(mad.rmpp.flags, 7) } },
	/* RMPP that nobody has asked for: data, and a packet that aborts it */
	{ "RMPP data", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, SA), IS(mad.method, GET_TABLE), IS(mad.rmpp.version, 1),
	    IS(mad.rmpp.type, 1) } },
	{ "RMPP of an unknown version", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, SA), IS(mad.method, GET_TABLE), IS(mad.rmpp.version, 99),
	    IS(mad.rmpp.flags, 0xff) } },
	{ "RMPP abort", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, SA), IS(mad.method, GET_TABLE | RESPONSE), IS(mad.rmpp.version, 1),
	    IS(mad.rmpp.type, 4) } },
	/* Directed routes */
	{ "no hop", SMI, DIRECTION, { ROUTE } },
	{ "one hop", SMI, NO_ANSWER, { ROUTE, IS(mad.hop_cnt, 1), IS(mad.smp.initial_path[1], 1) } },
	{ "63 hops", SMI, NO_ANSWER, { ROUTE, IS(mad.hop_cnt, 63), IS(mad.smp.initial_path[1], 1) } },
	{ "64 hops", SMI, REFUSED, { ROUTE, IS(mad.hop_cnt, 64), IS(mad.smp.initial_path[1], 1) } },
	{ "255 hops", SMI, REFUSED, { ROUTE, IS(mad.hop_cnt, 255), IS(mad.smp.initial_path[1], 1) } },
	{ "hop 200 of 1", SMI, REFUSED, { ROUTE, IS(mad.hop_ptr, 200), IS(mad.hop_cnt, 1) } },
	{ "by port 7", SMI, REFUSED, { ROUTE, IS(mad.hop_cnt, 1), IS(mad.smp.initial_path[1], 7) } },
	/* Not looked at before they are sent, since they say that they come from a LID */
	{ "64 hops behind a LID", SMI, NO_ANSWER, { BY_LID, IS(mad.hop_cnt, 64) } },
	{ "255 hops behind a LID", SMI, NO_ANSWER, { BY_LID, IS(mad.hop_cnt, 255) } },
	{ "hop 200 of 1 behind a LID", SMI, NO_ANSWER,
	  { BY_LID, IS(mad.hop_ptr, 200), IS(mad.hop_cnt, 1) } },
	{ "back from hop 255", SMI, NO_ANSWER,
	  { BY_LID, IS(mad.status, DIRECTION), IS(mad.hop_ptr, 255), IS(mad.hop_cnt, 1) } },
	/* Queue pairs */
	{ "subnet management to queue pair 1", SMI, NO_ANSWER, { IS(hdr.qpn, 1) } },
	{ "performance management to queue pair 0", GSI, NO_ANSWER, { IS(hdr.qpn, 0) } },
	{ "performance management from queue pair 0", SMI, NO_ANSWER,
	  { IS(mad.mgmt_class, PERF), IS(mad.attr_id, CLASS_PORT_INFO) } },
	{ "subnet management from queue pair 1", GSI, NO_ANSWER,
	  { IS(mad.mgmt_class, SUBN), IS(mad.attr_id, NODE_INFO) } },
	{ "to a queue pair that is not there", GSI, NO_ANSWER, { IS(hdr.qpn, 0x123456) } },
	/* Addresses */
	{ "LID 0", GSI, REFUSED, { IS(hdr.lid, 0) } },
	{ "a LID that no port has", SMI, NO_ANSWER, { IS(hdr.lid, 0x4711) } },
	{ "a LID that no port has", GSI, NO_ANSWER, { IS(hdr.lid, 0x4711) } },
	{ "the LID of a group, without a GID", GSI, REFUSED, { IS(hdr.lid, 0xc123) } },
	{ "any port's LID", GSI, NO_ANSWER, { IS(hdr.lid, PERMISSIVE_LID) } },
	{ "a GID that no port has", GSI, NO_ANSWER,
	  { IS(hdr.grh_present, 1), IS(hdr.gid[0], 0xfe), IS(hdr.gid[15], 0x42) } },
	{ "from a GID that the port does not have", GSI, REFUSED,
	  { IS(hdr.grh_present, 1), IS(hdr.gid_index, 200) } },
	{ "a P_Key beyond the table", GSI, REFUSED, { IS(hdr.pkey_index, 0x4242) } },
	/* Lengths: what is missing of 256 bytes is zero */
	{ "24 bytes", GSI, REFUSED, .bytes = 24 },
	{ "36 bytes", GSI, GOOD, .bytes = 36 },
	{ "36 bytes", SMI, GOOD, .bytes = 36 },
	{ "55 bytes, where data begin at 56", GSI, REFUSED, { IS(mad.mgmt_class, SA) }, 55 },
	{ "257 bytes", GSI, REFUSED, .bytes = 257 },
};

static int fd;
static uint16_t own_lid;
static uint32_t agents[QPS], last_tid;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void register_agent(enum qp qp)
{
	struct ib_user_mad_reg_req request = { .qpn = qp };

	must(!ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request), "IB_USER_MAD_REGISTER_AGENT");
	agents[qp] = request.id;
}

/* Forget what has no answer: newer kernels limit how much waits for one. */
static void renew_agent(enum qp qp)
{
	must(!ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &agents[qp]), "IB_USER_MAD_UNREGISTER_AGENT");
	register_agent(qp);
}

static struct packet good(enum qp qp)
{
	return (struct packet) {
		.hdr = {
			.id = agents[qp],
			.qpn = htobe32(qp),
			.lid = htobe16(own_lid),
			.timeout_ms = FOREVER_MS,
		},
		.mad = {
			.base_version = BASE_VERSION,
			.mgmt_class = qp == SMI ? SUBN : PERF,
			.class_version = 1,
			.method = GET,
			.tid = htobe64(++last_tid),
			.attr_id = htobe16(qp == SMI ? NODE_INFO : CLASS_PORT_INFO),
		},
	};
}

static int post(const struct packet *p, size_t bytes)
{
	/* Room for more than there may be. */
	char buf[sizeof(*p) + 8] = {};

	memcpy(buf, p, sizeof(*p));
	bytes += sizeof(p->hdr);
	return write(fd, buf, bytes) == (ssize_t)bytes;
}

/* The next that comes; its number is what the process gave it. */
static struct mad answer(uint32_t *tid)
{
	struct packet p;

	must(read(fd, &p, sizeof(p)) == sizeof(p), "read");
	if (p.hdr.status) {
		printf("number %u: status %u of ib_umad\n", (uint32_t)be64toh(p.mad.tid),
		       p.hdr.status);
		exit(1);
	}
	*tid = be64toh(p.mad.tid);
	return p.mad;
}

static void apply(struct packet *p, const struct patch *patch)
{
	const uint64_t value = htobe64(patch->value);

	memcpy((char *)p + patch->offset, (const char *)&value + 8 - patch->size, patch->size);
}

/* Whether what comes of the row is what has to. */
static int try(const struct row *row)
{
	struct packet p = good(row->qp), next;
	const uint32_t bad_tid = be64toh(p.mad.tid);
	uint32_t tid;
	struct mad mad;
	int i, sent;

	for (i = 0; i < MOST_PATCHES; i++)
		apply(&p, &row->patches[i]);
	sent = post(&p, row->bytes ? row->bytes : sizeof(p.mad));
	if (row->expected == REFUSED) {
		if (sent)
			printf("ib_umad takes it: ");
		return !sent && errno == EINVAL;
	}
	must(sent, row->name);
	if (row->expected == NO_ANSWER) {
		next = good(row->qp);
		must(post(&next, sizeof(next.mad)), "something good");
	}
	mad = answer(&tid);
	printf("%s %#x: ", tid == bad_tid ? "status" : "no answer; the next", be16toh(mad.status));
	if (row->expected == NO_ANSWER)
		return tid != bad_tid && !mad.status;
	return tid == bad_tid && be16toh(mad.status) == row->expected && mad.method & RESPONSE &&
	       mad.mgmt_class == p.mad.mgmt_class;
}

static int try_rows(void)
{
	size_t i, wrong = 0;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int ok = try(&rows[i]);

		printf("%s, queue pair %d: %s\n", rows[i].name, rows[i].qp, ok ? "ok" : "WRONG");
		fflush(stdout);
		wrong += !ok;
	}
	printf("%zu of %zu as they must be\n", i - wrong, i);
	return wrong ? 1 : 0;
}

static uint32_t lot(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* ib_cm is left out: it is not what is tried here. */
static struct packet drawn(uint64_t *state, enum qp qp)
{
	static const uint8_t classes[QPS][4] = {
		{ SUBN, SUBN, DIRECTED, PERF }, { PERF, PERF, SA, NOBODYS },
	};
	struct packet p = good(qp);
	const uint64_t tid = p.mad.tid;
	size_t i;

	for (i = 0; i < sizeof(p.mad); i++)
		((uint8_t *)&p.mad)[i] = lot(state);
	p.mad.base_version = BASE_VERSION;
	p.mad.tid = tid;
	p.mad.mgmt_class = classes[qp][lot(state) % 4];
	if (lot(state) % 8) {
		p.mad.class_version = 1;
		p.mad.attr_id = htobe16(0x10 + lot(state) % 0x12);
	}
	if (lot(state) % 8)
		p.mad.method = lot(state) % 2 ? GET : SET;
	if (lot(state) % 2)
		p.mad.attr_mod = htobe32(lot(state) % 4);
	/* Most of the hops that are drawn cannot be. */
	if (lot(state) % 4) {
		p.mad.hop_ptr = 0;
		p.mad.hop_cnt = 0;
	}
	return p;
}

static int try_random(uint64_t state, unsigned long count)
{
	unsigned long sent = 0, answered = 0, i;

	for (i = 0; i < count; i++) {
		const enum qp qp = lot(&state) % QPS;
		struct packet p = drawn(&state, qp);
		uint32_t tid;

		sent += post(&p, sizeof(p.mad));
		if (i % BURST && i + 1 < count)
			continue;
		/* What has an answer has it before this one, which is behind it. */
		for (int each = 0; each < QPS; each++) {
			p = good(each);
			must(post(&p, sizeof(p.mad)), "something good");
			do {
				const struct mad mad = answer(&tid);

				if (tid > last_tid || !(mad.method & RESPONSE) ||
				    be16toh(mad.status) & ~(DIRECTION | 0x1c)) {
					printf("number %u: method %#x, status %#x\n", tid,
					       mad.method, be16toh(mad.status));
					return 1;
				}
				answered++;
			} while (tid != last_tid);
			renew_agent(each);
		}
	}
	printf("%lu drawn, %lu sent, %lu answers\n", count, sent, answered);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: see the top of the source\n");
		return 2;
	}
	own_lid = atoi(argv[2]);
	fd = open(argv[1], O_RDWR);
	must(fd >= 0, argv[1]);
	must(!ioctl(fd, IB_USER_MAD_ENABLE_PKEY), "IB_USER_MAD_ENABLE_PKEY");
	register_agent(SMI);
	register_agent(GSI);
	if (argc == 6 && !strcmp(argv[3], "random"))
		return try_random(strtoull(argv[4], NULL, 0), strtoul(argv[5], NULL, 0));
	return try_rows();
}
