// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * cm.c - connections made by rdma_cm, both ends in one process.
 *
 *	cm talk rc|ud SERVER CLIENT	connect, exchange messages, disconnect
 *	cm refused SERVER CLIENT	what does not become a connection
 *	cm listen any|DEVICE	listen, say on which port, tell of events
 *	cm hold SERVER CLIENT	connect, say so, tell of events
 *
 * The last two end when their input does. Addresses are GIDs (AF_IB): no network
 * interface is needed. Where the path is not asked of a subnet administrator,
 * of which there is none, it is given by RDMA_OPTION_IB_PATH.
 * scripts/guest-program builds it for a suite.
 */
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES	20
#define BYTES		1000
#define GRH		40
#define DEFAULT_PKEY	0xffff
#define PATIENCE_MS	10000
/* "this and no other", of a path's MTU, rate and lifetime */
#define EXACTLY		(2 << 6)
#define RATE_100_GBPS	16
#define LIFETIME	0
/* InfiniBand volume 1, 12.6.7.2: why a connection is rejected */
#define REJ_INVALID_SERVICE_ID	8
#define REJ_CONSUMER_DEFINED	28

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* One end of a connection, or who waits for one. */
struct end {
	const char *device;
	union ibv_gid gid;
	struct ibv_port_attr port;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buf[GRH + BYTES];
};

static struct end server, listener, client;

/* --- addresses ------------------------------------------------------------- */

static void look_at(struct end *end, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **dev = list;
	struct ibv_context *context;

	must(list != NULL, "ibv_get_device_list");
	while (*dev && strcmp(ibv_get_device_name(*dev), device))
		dev++;
	must(*dev != NULL, device);
	context = ibv_open_device(*dev);
	must(context != NULL, "ibv_open_device");
	must(!ibv_query_gid(context, 1, 0, &end->gid), "ibv_query_gid");
	must(!ibv_query_port(context, 1, &end->port), "ibv_query_port");
	ibv_close_device(context);
	ibv_free_device_list(list);
	end->device = device;
}

static struct sockaddr_ib address(const struct end *end, uint64_t service)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(DEFAULT_PKEY),
		.sib_sid = htobe64(service),
		.sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK),
	};

	memcpy(sib.sib_addr.sib_raw, end->gid.raw, sizeof(end->gid));
	return sib;
}

static uint64_t service_of(const struct end *end)
{
	return be64toh(((struct sockaddr_ib *)rdma_get_local_addr(end->id))->sib_sid);
}

/* --- events ---------------------------------------------------------------- */

/* Wait for an event, which has to be this one; rdma_ack_cm_event() is the caller's. */
static struct rdma_cm_event *expect(struct end *end, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	must(!rdma_get_cm_event(end->channel, &event), "rdma_get_cm_event");
	if (event->event != type) {
		printf("%s: %s, status %d, and not %s\n", end->device,
		       rdma_event_str(event->event), event->status, rdma_event_str(type));
		exit(1);
	}
	return event;
}

static void pass(struct end *end, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(expect(end, type));
}

static void tell(struct end *end)
{
	struct rdma_cm_event *event;

	must(!rdma_get_cm_event(end->channel, &event), "rdma_get_cm_event");
	printf("event %s %s\n", end->device, rdma_event_str(event->event));
	fflush(stdout);
	rdma_ack_cm_event(event);
}

static void tell_until_end_of_input(struct end *one, struct end *other)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = one->channel->fd, .events = POLLIN },
		{ .fd = other ? other->channel->fd : -1, .events = POLLIN },
	};

	while (poll(fds, 3, -1) > 0 && !fds[0].revents) {
		if (fds[1].revents)
			tell(one);
		if (fds[2].revents)
			tell(other);
	}
}

/* --- connections ----------------------------------------------------------- */

static void create_id(struct end *end, enum rdma_port_space ps)
{
	end->channel = rdma_create_event_channel();
	must(end->channel != NULL, "rdma_create_event_channel");
	must(!rdma_create_id(end->channel, &end->id, NULL, ps), "rdma_create_id");
}

static uint64_t listen_to(const char *device, enum rdma_port_space ps)
{
	const uint64_t space = ps == RDMA_PS_UDP ? RDMA_IB_IP_PS_UDP : RDMA_IB_IP_PS_TCP;
	struct sockaddr_ib sib;

	look_at(&listener, device);
	create_id(&listener, ps);
	sib = address(&listener, space);
	must(!rdma_bind_addr(listener.id, (struct sockaddr *)&sib), "rdma_bind_addr");
	must(!rdma_listen(listener.id, 1), "rdma_listen");
	return service_of(&listener);
}

static void resolve_address(const char *device, enum rdma_port_space ps, uint64_t service)
{
	struct sockaddr_ib from, to;

	look_at(&client, device);
	create_id(&client, ps);
	from = address(&client, service & RDMA_IB_IP_PS_MASK);
	to = address(&listener, service);
	must(!rdma_resolve_addr(client.id, (struct sockaddr *)&from, (struct sockaddr *)&to,
				PATIENCE_MS),
	     "rdma_resolve_addr");
	pass(&client, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (strcmp(ibv_get_device_name(client.id->verbs->device), device)) {
		printf("resolved to %s\n", ibv_get_device_name(client.id->verbs->device));
		exit(1);
	}
}

static void set_path(void)
{
	struct ibv_path_data path = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {
			.dgid = listener.gid,
			.sgid = client.gid,
			.dlid = htobe16(listener.port.lid),
			.slid = htobe16(client.port.lid),
			.reversible_numpath = 1 << 7 | 1,
			.pkey = htobe16(DEFAULT_PKEY),
			.mtu = EXACTLY | client.port.active_mtu,
			.rate = EXACTLY | RATE_100_GBPS,
			.packetlifetime = EXACTLY | LIFETIME,
		},
	};

	must(!rdma_set_option(client.id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)),
	     "RDMA_OPTION_IB_PATH");
	pass(&client, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void receive(struct end *end)
{
	must(!rdma_post_recv(end->id, NULL, end->buf, sizeof(end->buf), end->mr), "rdma_post_recv");
}

/* The queue pair of an id, its completion queues, and a receive posted to it. */
static void create_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = end->id->qp_type,
		.sq_sig_all = 1,
	};

	must(!rdma_create_qp(end->id, NULL, &attr), "rdma_create_qp");
	end->mr = rdma_reg_msgs(end->id, end->buf, sizeof(end->buf));
	must(end->mr != NULL, "rdma_reg_msgs");
	receive(end);
}

static void take_request(void)
{
	struct rdma_cm_event *event = expect(&listener, RDMA_CM_EVENT_CONNECT_REQUEST);

	server.device = listener.device;
	server.id = event->id;
	rdma_ack_cm_event(event);
	server.channel = rdma_create_event_channel();
	must(server.channel != NULL, "rdma_create_event_channel");
	must(!rdma_migrate_id(server.id, server.channel), "rdma_migrate_id");
}

/* The client's queue pair sends here, for datagrams. */
static struct ibv_ah *connect_both(struct rdma_ud_param *peer)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.rnr_retry_count = 7,
	};
	const int datagrams = client.id->qp_type == IBV_QPT_UD;
	struct rdma_cm_event *event;
	struct ibv_ah *ah = NULL;

	create_qp(&client);
	must(!rdma_connect(client.id, &param), "rdma_connect");
	take_request();
	create_qp(&server);
	param.qp_num = server.id->qp->qp_num;
	must(!rdma_accept(server.id, &param), "rdma_accept");
	event = expect(&client, RDMA_CM_EVENT_ESTABLISHED);
	if (datagrams) {
		*peer = event->param.ud;
		ah = ibv_create_ah(client.id->pd, &peer->ah_attr);
		must(ah != NULL, "ibv_create_ah");
	}
	rdma_ack_cm_event(event);
	if (!datagrams)
		pass(&server, RDMA_CM_EVENT_ESTABLISHED);
	return ah;
}

static void destroy(struct end *end)
{
	if (end->mr)
		must(!rdma_dereg_mr(end->mr), "rdma_dereg_mr");
	if (end->id->qp)
		rdma_destroy_qp(end->id);
	must(!rdma_destroy_id(end->id), "rdma_destroy_id");
	rdma_destroy_event_channel(end->channel);
	memset(end, 0, sizeof(*end));
}

/* --- messages -------------------------------------------------------------- */

static struct ibv_wc completed(struct end *end, int (*get)(struct rdma_cm_id *, struct ibv_wc *))
{
	struct ibv_wc wc;

	must(get(end->id, &wc) == 1, "no completion");
	if (wc.status != IBV_WC_SUCCESS) {
		printf("%s: %s\n", end->device, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

/* Where a message lies: a datagram has the room for a GRH before it. */
static char *text(struct end *end)
{
	return end->buf + (end->id->qp_type == IBV_QPT_UD ? GRH : 0);
}

static void post(struct end *from, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)text(from), .length = BYTES, .lkey = from->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = qkey;
	}
	must(!ibv_post_send(from->id->qp, &wr, &bad), "ibv_post_send");
}

static struct ibv_wc arrived(struct end *from, struct end *to, int letter)
{
	struct ibv_wc wc = completed(to, rdma_get_recv_comp);
	int i;

	completed(from, rdma_get_send_comp);
	for (i = 0; i < BYTES && text(to)[i] == letter; i++)
		;
	if (i < BYTES) {
		printf("%s: byte %d is %d, not %d\n", to->device, i, text(to)[i], letter);
		exit(1);
	}
	return wc;
}

/* There and back, in one buffer at each end, so a receive follows a send. */
static void exchange(struct ibv_ah *there, const struct rdma_ud_param *peer)
{
	struct ibv_ah *back = NULL;
	struct ibv_wc wc;
	int n;

	for (n = 0; n < MESSAGES; n++) {
		memset(text(&client), 'a' + n, BYTES);
		post(&client, there, peer->qp_num, peer->qkey);
		wc = arrived(&client, &server, 'a' + n);
		if (there && !back) {
			back = ibv_create_ah_from_wc(server.id->pd, &wc, (void *)server.buf, 1);
			must(back != NULL, "ibv_create_ah_from_wc");
		}
		memset(text(&server), 'A' + n, BYTES);
		memset(text(&client), 0, BYTES);
		post(&server, back, wc.src_qp, RDMA_UDP_QKEY);
		arrived(&server, &client, 'A' + n);
		receive(&client);
		receive(&server);
	}
	if (back)
		must(!ibv_destroy_ah(back), "ibv_destroy_ah");
	if (there)
		must(!ibv_destroy_ah(there), "ibv_destroy_ah");
}

/* --- what can be asked for ------------------------------------------------- */

static enum rdma_port_space connected(const char *type, const char *to, const char *from)
{
	const enum rdma_port_space ps = strcmp(type, "ud") ? RDMA_PS_TCP : RDMA_PS_UDP;

	resolve_address(from, ps, listen_to(to, ps));
	set_path();
	return ps;
}

static void talk(const char *type, const char *to, const char *from)
{
	const enum rdma_port_space ps = connected(type, to, from);
	struct rdma_ud_param peer = {};

	exchange(connect_both(&peer), &peer);
	if (ps == RDMA_PS_TCP) {
		must(!rdma_disconnect(client.id), "rdma_disconnect");
		pass(&server, RDMA_CM_EVENT_DISCONNECTED);
		/* This is what answers the client. */
		must(!rdma_disconnect(server.id), "rdma_disconnect");
		pass(&client, RDMA_CM_EVENT_DISCONNECTED);
	}
	destroy(&client);
	destroy(&server);
	destroy(&listener);
	printf("%d messages each way\n", MESSAGES);
}

static void rejected(int status, const char *why)
{
	struct rdma_cm_event *event = expect(&client, RDMA_CM_EVENT_REJECTED);
	const struct rdma_conn_param *param = &event->param.conn;

	if (event->status != status || (why && (param->private_data_len < strlen(why) ||
						memcmp(param->private_data, why, strlen(why))))) {
		printf("rejected with status %d, not %d (%s)\n", event->status, status, why);
		exit(1);
	}
	rdma_ack_cm_event(event);
	destroy(&client);
}

static void refused(const char *to, const char *from)
{
	static const char why[] = "not you";
	struct rdma_conn_param param = {};
	uint64_t service = listen_to(to, RDMA_PS_TCP);

	/* Nobody tells a path. */
	resolve_address(from, RDMA_PS_TCP, service);
	must(!rdma_resolve_route(client.id, PATIENCE_MS), "rdma_resolve_route");
	pass(&client, RDMA_CM_EVENT_ROUTE_ERROR);
	destroy(&client);

	/* The listener does not want it. */
	resolve_address(from, RDMA_PS_TCP, service);
	set_path();
	create_qp(&client);
	must(!rdma_connect(client.id, &param), "rdma_connect");
	take_request();
	must(!rdma_reject(server.id, why, sizeof(why)), "rdma_reject");
	rejected(REJ_CONSUMER_DEFINED, why);
	destroy(&server);

	/* Nobody listens there. */
	resolve_address(from, RDMA_PS_TCP, service ^ 1);
	set_path();
	create_qp(&client);
	must(!rdma_connect(client.id, &param), "rdma_connect");
	rejected(REJ_INVALID_SERVICE_ID, NULL);
	destroy(&listener);
}

static void listen_and_tell(const char *where)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	listener.device = where;
	if (strcmp(where, "any")) {
		listen_to(where, RDMA_PS_TCP);
	} else {
		create_id(&listener, RDMA_PS_TCP);
		must(!rdma_bind_addr(listener.id, (struct sockaddr *)&any), "rdma_bind_addr");
		must(!rdma_listen(listener.id, 1), "rdma_listen");
	}
	printf("port %d\n", ntohs(rdma_get_src_port(listener.id)));
	fflush(stdout);
	tell_until_end_of_input(&listener, NULL);
	destroy(&listener);
}

static void hold(const char *to, const char *from)
{
	struct rdma_ud_param peer;

	connected("rc", to, from);
	connect_both(&peer);
	printf("connected\n");
	fflush(stdout);
	tell_until_end_of_input(&server, &client);
	destroy(&client);
	destroy(&server);
	destroy(&listener);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (argc == 5 && !strcmp(word, "talk")) {
		talk(argv[2], argv[3], argv[4]);
	} else if (argc == 4 && !strcmp(word, "refused")) {
		refused(argv[2], argv[3]);
	} else if (argc == 3 && !strcmp(word, "listen")) {
		listen_and_tell(argv[2]);
	} else if (argc == 4 && !strcmp(word, "hold")) {
		hold(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: see the top of the source\n");
		return 2;
	}
	return 0;
}
