// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "world.h"

#include <algorithm>
#include <cstdlib>

namespace
{

sim::Machine &machine()
{
	return *sim::Machine::current();
}

void *exact(size_t bytes)
{
	void *mem = nullptr;

	if (posix_memalign(&mem, 16, bytes))
		machine().fail("the test is out of memory");
	memset(mem, 0, bytes);
	return mem;
}

void no_lock(const char *what)
{
	if (machine().locks_held())
		machine().fail("%s is called with a lock held", what);
}

void process(const char *what)
{
	no_lock(what);
	if (machine().in_interrupt())
		machine().fail("%s is called in interrupt context", what);
}

void on_cq_comp(void *ctx)
{
	auto *cq = static_cast<Cq *>(ctx);

	no_lock("cq_comp");
	if (!cq->raw)
		machine().fail("cq_comp for a queue that is not there");
	machine().maybe_switch();
	cq->upcalls++;
	if (cq->on_upcall)
		cq->on_upcall();
	if (!cq->raw)
		machine().fail("a queue was destroyed during its upcall");
}

void on_cq_event(void *ctx, rvt_event event)
{
	auto *cq = static_cast<Cq *>(ctx);

	process("cq_event");
	machine().maybe_switch();
	if (!cq->raw)
		machine().fail("cq_event for a queue that is not there");
	cq->events.push_back(event);
}

void on_qp_event(void *ctx, rvt_event event)
{
	auto *qp = static_cast<Qp *>(ctx);

	process("qp_event");
	machine().maybe_switch();
	if (!qp->raw)
		machine().fail("qp_event %d for a queue pair that is not there", event);
	qp->events.push_back(event);
	if (qp->on_event)
		qp->on_event(event);
}

void on_srq_event(void *ctx, rvt_event event)
{
	auto *srq = static_cast<Srq *>(ctx);

	process("srq_event");
	machine().maybe_switch();
	if (!srq->raw)
		machine().fail("srq_event for a queue that is not there");
	srq->events.push_back(event);
}

const rvt_core_ops ops = {
	.cq_comp = on_cq_comp,
	.cq_event = on_cq_event,
	.qp_event = on_qp_event,
	.srq_event = on_srq_event,
};

} // namespace

/* --- memory ----------------------------------------------------------------- */

Mem::Mem(size_t bytes) : bytes_(bytes)
{
	size_t n = (bytes + page_size - 1) / page_size;
	std::vector<void *> made(n);

	for (void *&page : made) {
		if (posix_memalign(&page, page_size, page_size))
			machine().fail("the test is out of memory");
		memset(page, 0, page_size);
	}
	/* Every second one from the end, then the others: no two in a row. */
	for (size_t i = n; i-- > 0;)
		if (i % 2)
			pages_.push_back(static_cast<uint8_t *>(made[i]));
	for (size_t i = n; i-- > 0;)
		if (i % 2 == 0)
			pages_.push_back(static_cast<uint8_t *>(made[i]));
}

Mem::~Mem()
{
	for (uint8_t *page : pages_)
		free(page);
}

void Mem::write(size_t offset, const std::string &bytes)
{
	for (size_t i = 0; i < bytes.size(); i++)
		*at(offset + i) = static_cast<uint8_t>(bytes[i]);
}

std::string Mem::read(size_t offset, size_t n) const
{
	std::string bytes(n, '\0');

	for (size_t i = 0; i < n; i++)
		bytes[i] = static_cast<char>(*at(offset + i));
	return bytes;
}

void Mem::fill(char c)
{
	for (uint8_t *page : pages_)
		memset(page, c, page_size);
}

uint64_t Mem::word(size_t offset) const
{
	uint64_t value;
	std::string bytes = read(offset, sizeof(value));

	memcpy(&value, bytes.data(), sizeof(value));
	return value;
}

void Mem::set_word(size_t offset, uint64_t value)
{
	write(offset, std::string(reinterpret_cast<const char *>(&value), sizeof(value)));
}

std::string pattern(size_t n, unsigned int seed)
{
	std::string bytes(n, '\0');
	uint32_t x = seed * 2654435761u + 12345;

	for (char &c : bytes) {
		x = x * 1664525 + 1013904223;
		c = static_cast<char>(x >> 24);
	}
	return bytes;
}

void Mr::destroy()
{
	rvt_core_mr *mr = raw;

	raw = nullptr;
	if (mr)
		rvt_core_mr_destroy(mr);
}

/* --- completion queues ---------------------------------------------------------- */

std::optional<rvt_wc> Cq::poll()
{
	world->m.settle();
	return poll_now();
}

std::optional<rvt_wc> Cq::poll_now()
{
	if (!ring) {
		rvt_kernel_wc wc;

		if (rvt_core_cq_poll(raw, 1, &wc) != 1)
			return {};
		return wc.wc;
	}

	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint32_t tail = ring->tail;

	if (head == tail)
		return {};
	rvt_wc wc = ring->entry[tail];

	__atomic_store_n(&ring->tail, tail >= cqe ? 0 : tail + 1, __ATOMIC_RELEASE);
	return wc;
}

std::vector<rvt_wc> Cq::poll_all()
{
	std::vector<rvt_wc> all;

	while (auto wc = poll())
		all.push_back(*wc);
	return all;
}

uint32_t Cq::waiting()
{
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	return (head + cqe + 1 - ring->tail) % (cqe + 1);
}

int Cq::resize(uint32_t new_cqe)
{
	rvt_cq_ring *new_ring = nullptr;

	if (ring)
		new_ring = static_cast<rvt_cq_ring *>(exact(rvt_cq_ring_size(new_cqe)));
	int rc = rvt_core_cq_resize(raw, new_cqe, new_ring);

	if (rc) {
		free(new_ring);
		return rc;
	}
	free(ring);
	ring = new_ring;
	cqe = new_cqe;
	return 0;
}

void Cq::destroy()
{
	if (!raw)
		return;
	rvt_core_cq_destroy(raw);
	raw = nullptr;
	free(ring);
	ring = nullptr;
}

/* --- receive rings ----------------------------------------------------------------- */

void RecvRing::make(uint32_t max_wr, uint32_t sge)
{
	ring = static_cast<rvt_rq_ring *>(exact(rvt_rq_ring_size(max_wr, sge)));
	size = max_wr + 1;
	max_sge = sge;
}

void RecvRing::drop()
{
	free(ring);
	ring = nullptr;
}

int RecvRing::post(uint64_t wr_id, const std::vector<rvt_sge> &sge)
{
	if (sge.size() > max_sge)
		return -22;

	uint32_t head = ring->head;
	uint32_t next = head + 1 >= size ? 0 : head + 1;

	/* A process that has spoilt its own ring would crash itself. */
	if (head >= size)
		return -22;
	if (next == tail())
		return -12;
	rvt_rwqe *e = entry(head);

	e->wr_id = wr_id;
	e->num_sge = static_cast<uint8_t>(sge.size());
	std::copy(sge.begin(), sge.end(), e->sge);
	__atomic_store_n(&ring->head, next, __ATOMIC_RELEASE);
	return 0;
}

int Srq::recv(uint64_t wr_id, const std::vector<rvt_sge> &sge)
{
	if (ring.ring)
		return ring.post(wr_id, sge);
	return rvt_core_srq_post(raw, wr_id, sge.data(), static_cast<uint32_t>(sge.size()));
}

int Srq::resize(uint32_t max_wr, const uint32_t *limit)
{
	RecvRing fresh;

	if (ring.ring)
		fresh.make(max_wr, ring.max_sge);
	int rc = rvt_core_srq_resize(raw, max_wr, limit, fresh.ring);

	if (rc) {
		fresh.drop();
		return rc;
	}
	ring.drop();
	ring = fresh;
	return 0;
}

uint32_t Srq::limit()
{
	uint32_t max_wr, max_sge, limit;

	rvt_core_srq_query(raw, &max_wr, &max_sge, &limit);
	return limit;
}

void Srq::destroy()
{
	if (!raw)
		return;
	rvt_core_srq_destroy(raw);
	raw = nullptr;
	ring.drop();
}

/* --- work requests -------------------------------------------------------------------- */

Wr wr_send(uint64_t id, std::vector<rvt_sge> sge, uint32_t flags)
{
	return {.id = id, .op = RVT_WR_SEND, .flags = flags, .sge = std::move(sge)};
}

Wr wr_send_imm(uint64_t id, std::vector<rvt_sge> sge, uint32_t imm, uint32_t flags)
{
	return {.id = id,
		.op = RVT_WR_SEND_WITH_IMM,
		.flags = flags,
		.sge = std::move(sge),
		.imm = imm};
}

Wr wr_send_inv(uint64_t id, std::vector<rvt_sge> sge, uint32_t rkey)
{
	return {.id = id, .op = RVT_WR_SEND_WITH_INV, .sge = std::move(sge), .imm = rkey};
}

Wr wr_write(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return {.id = id,
		.op = RVT_WR_RDMA_WRITE,
		.flags = flags,
		.sge = std::move(sge),
		.raddr = raddr,
		.rkey = rkey};
}

Wr wr_write_imm(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey, uint32_t imm,
		uint32_t flags)
{
	Wr wr = wr_write(id, std::move(sge), raddr, rkey, flags);

	wr.op = RVT_WR_RDMA_WRITE_WITH_IMM;
	wr.imm = imm;
	return wr;
}

Wr wr_read(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	Wr wr = wr_write(id, std::move(sge), raddr, rkey, flags);

	wr.op = RVT_WR_RDMA_READ;
	return wr;
}

Wr wr_cas(uint64_t id, rvt_sge sge, uint64_t raddr, uint32_t rkey, uint64_t compare, uint64_t swap)
{
	Wr wr = wr_write(id, {sge}, raddr, rkey);

	wr.op = RVT_WR_ATOMIC_CMP_AND_SWP;
	wr.compare_add = compare;
	wr.swap = swap;
	return wr;
}

Wr wr_faa(uint64_t id, rvt_sge sge, uint64_t raddr, uint32_t rkey, uint64_t add)
{
	Wr wr = wr_write(id, {sge}, raddr, rkey);

	wr.op = RVT_WR_ATOMIC_FETCH_AND_ADD;
	wr.compare_add = add;
	return wr;
}

Wr wr_local_inv(uint64_t id, uint32_t key, uint32_t flags)
{
	return {.id = id, .op = RVT_WR_LOCAL_INV, .flags = flags, .rkey = key, .imm = key};
}

Wr wr_reg(uint64_t id, rvt_core_mr *mr, uint32_t key, uint32_t access, uint32_t flags)
{
	return {.id = id,
		.op = RVT_WR_REG_MR,
		.flags = flags,
		.mr = mr,
		.key = key,
		.access = access};
}

/* --- queue pairs -------------------------------------------------------------------------- */

int Qp::to(rvt_qp_state state, uint32_t mask)
{
	attr.state = state;
	return modify(mask | RVT_QP_STATE);
}

int Qp::to_init()
{
	uint32_t mask = RVT_QP_PKEY_INDEX;

	if (type <= RVT_QPT_GSI)
		mask |= RVT_QP_QKEY;
	else
		mask |= RVT_QP_PORT | (type == RVT_QPT_UD ? RVT_QP_QKEY : RVT_QP_ACCESS_FLAGS);
	return to(RVT_QPS_INIT, mask);
}

void Qp::aim(const Qp &peer)
{
	attr.dest_qpn = peer.num;
	attr.ah.dlid = peer.dev->lid;
	attr.rq_psn = peer.attr.sq_psn;
}

int Qp::to_rtr()
{
	uint32_t mask = 0;

	if (type == RVT_QPT_RC || type == RVT_QPT_UC)
		mask |= RVT_QP_AV | RVT_QP_PATH_MTU | RVT_QP_DEST_QPN | RVT_QP_RQ_PSN;
	if (type == RVT_QPT_RC)
		mask |= RVT_QP_MAX_DEST_RD_ATOMIC | RVT_QP_MIN_RNR_TIMER;
	return to(RVT_QPS_RTR, mask);
}

int Qp::to_rts()
{
	uint32_t mask = RVT_QP_SQ_PSN;

	if (type == RVT_QPT_RC)
		mask |= RVT_QP_TIMEOUT | RVT_QP_RETRY_CNT | RVT_QP_RNR_RETRY |
			RVT_QP_MAX_QP_RD_ATOMIC;
	return to(RVT_QPS_RTS, mask);
}

rvt_qp_attr Qp::query()
{
	rvt_qp_attr now = {};

	rvt_core_qp_query(raw, &now);
	return now;
}

rvt_qp_stat Qp::stat()
{
	rvt_qp_stat stat = {};

	rvt_core_qp_stat(raw, &stat);
	return stat;
}

int Qp::post(const std::vector<Wr> &chain, size_t *posted)
{
	rvt_send_scope scope;
	unsigned int n = 0;
	int rc = rvt_core_send_begin(raw, &scope);

	if (posted)
		*posted = 0;
	if (rc)
		return rc;
	for (const Wr &wr : chain) {
		rvt_swqe *slot = rvt_core_send_slot(raw);

		slot->wr_id = number ? number(wr) : wr.id;
		const uint64_t id = slot->wr_id;

		slot->opcode = wr.op;
		slot->flags = wr.flags;
		slot->imm = wr.imm;
		slot->rkey = wr.rkey;
		slot->remote_addr = wr.raddr;
		if (wr.op == RVT_WR_REG_MR) {
			slot->reg.mr = wr.mr;
			slot->reg.key = wr.key;
			slot->reg.access = wr.access;
		} else if (wr.ah) {
			slot->ud.ah = &*wr.ah;
			slot->ud.ah_pd = wr.ah_pd ? wr.ah_pd : pd->raw;
			slot->ud.remote_qpn = wr.remote_qpn;
			slot->ud.remote_qkey = wr.qkey;
			slot->ud.pkey_index = wr.pkey_index;
		} else {
			slot->atomic.compare_add = wr.compare_add;
			slot->atomic.swap = wr.swap;
		}
		rc = rvt_post_one_wr(raw, wr.sge.data(), static_cast<uint32_t>(wr.sge.size()),
				     wr.flags & RVT_SEND_INLINE ? wr.inline_data.data() : nullptr);
		if (rc) {
			if (refused)
				refused(id);
			break;
		}
		n++;
	}
	rvt_core_send_end(raw, &scope, n);
	if (posted)
		*posted = n;
	return rc;
}

int Qp::recv(uint64_t wr_id, const std::vector<rvt_sge> &sge)
{
	if (ring.ring)
		return ring.post(wr_id, sge);
	return rvt_core_recv_post(raw, wr_id, sge.data(), static_cast<uint32_t>(sge.size()));
}

size_t Qp::count(rvt_event event) const
{
	return static_cast<size_t>(std::count(events.begin(), events.end(), event));
}

void Qp::destroy()
{
	if (!raw)
		return;
	rvt_core_qp_destroy(raw);
	raw = nullptr;
	ring.drop();
}

/* --- devices and the world -------------------------------------------------------------------- */

uint64_t Device::counter(rvt_counter which)
{
	uint64_t value[RVT_COUNTERS] = {};

	rvt_core_counters_read(raw, value);
	return value[which];
}

unsigned int Device::destroy()
{
	rvt_core_dev *dev = raw;

	raw = nullptr;
	return dev ? rvt_core_dev_destroy(dev) : 0;
}

World::World(bool is_user, unsigned int devices, uint64_t seed) : m(seed), user(is_user)
{
	check(rvt_core_init() == 0, "rvt_core_init failed");
	for (unsigned int i = 0; i < devices; i++)
		add_device();
	if (devices)
		add_pd();
}

World::~World()
{
	m.settle();
	for (auto &qp : qps)
		qp->destroy();
	for (auto &srq : srqs)
		srq->destroy();
	for (auto &mr : mrs)
		mr->destroy();
	for (auto &cq : cqs)
		cq->destroy();
	for (auto &pd : pds)
		if (pd->raw && pd->dev->raw)
			rvt_core_pd_destroy(pd->raw);
	for (auto &dev : devs)
		check(dev->destroy() == 0, "objects are left in the device");
	rvt_core_exit();
}

Device &World::add_device()
{
	auto dev = std::make_unique<Device>();

	dev->world = this;
	dev->guid = next_guid_++;
	dev->raw = rvt_core_dev_create(&ops, dev->guid, &dev->lid);
	check(dev->raw, "no device");
	check(rvt_core_gid_get(dev->raw, 0, dev->gid) == 0, "no GID 0");
	devs.push_back(std::move(dev));
	return *devs.back();
}

Pd &World::add_pd(Device &dev, bool is_user)
{
	auto pd =
		std::make_unique<Pd>(Pd{this, &dev, rvt_core_pd_create(dev.raw, is_user), is_user});

	check(pd->raw, "no protection domain");
	pds.push_back(std::move(pd));
	return *pds.back();
}

Mem &World::add_mem(size_t bytes)
{
	mems.push_back(std::make_unique<Mem>(bytes));
	return *mems.back();
}

Mr &World::add_mr(size_t bytes, uint32_t access, Pd *in, uint64_t iova)
{
	auto mr = std::make_unique<Mr>();
	rvt_core_pd *pd_raw = in ? in->raw : pd().raw;

	mr->world = this;
	mr->owner = in ? in : &pd();
	mr->iova = iova ? iova : next_iova_;
	mr->length = bytes;
	next_iova_ += 0x40000000;
	mr->mem = &add_mem((mr->iova & (page_size - 1)) + bytes);

	uint32_t n = static_cast<uint32_t>(mr->mem->pages());

	check(rvt_core_mr_create(pd_raw, RVT_MR_MEM, n, &mr->raw) == 0, "no region");
	for (uint32_t i = 0; i < n; i++)
		check(rvt_core_mr_set_page(mr->raw, i,
					   reinterpret_cast<uint64_t>(mr->mem->page(i))) == 0,
		      "page not set");
	check(rvt_core_mr_publish(mr->raw, mr->iova, bytes, n, 12, access) == 0,
	      "region not published");
	mr->key = rvt_core_mr_key(mr->raw);
	mrs.push_back(std::move(mr));
	return *mrs.back();
}

Mr &World::add_fast_mr(size_t bytes, Pd *in)
{
	auto mr = std::make_unique<Mr>();
	rvt_core_pd *pd_raw = in ? in->raw : pd().raw;

	mr->world = this;
	mr->owner = in ? in : &pd();
	mr->iova = next_iova_;
	mr->length = bytes;
	next_iova_ += 0x40000000;
	mr->mem = &add_mem(bytes);

	uint32_t n = static_cast<uint32_t>(mr->mem->pages());

	check(rvt_core_mr_create(pd_raw, RVT_MR_FAST, n, &mr->raw) == 0, "no region");
	for (uint32_t i = 0; i < n; i++)
		check(rvt_core_mr_set_page(mr->raw, i,
					   reinterpret_cast<uint64_t>(mr->mem->page(i))) == 0,
		      "page not set");
	check(rvt_core_mr_map(mr->raw, mr->iova, bytes, n, 12) == 0, "region not mapped");
	mr->key = rvt_core_mr_key(mr->raw);
	mrs.push_back(std::move(mr));
	return *mrs.back();
}

int World::try_cq(uint32_t cqe, Device *on, Cq **result)
{
	auto cq = std::make_unique<Cq>();

	cq->world = this;
	cq->cqe = cqe;
	if (user)
		cq->ring = static_cast<rvt_cq_ring *>(exact(rvt_cq_ring_size(cqe)));
	int rc = rvt_core_cq_create(on ? on->raw : dev().raw, cqe, cq->ring, cq.get(), &cq->raw);

	if (rc) {
		free(cq->ring);
		return rc;
	}
	cqs.push_back(std::move(cq));
	*result = cqs.back().get();
	return 0;
}

Cq &World::add_cq(uint32_t cqe, Device *on)
{
	Cq *cq = nullptr;

	check(try_cq(cqe, on, &cq) == 0, "no completion queue");
	return *cq;
}

int World::try_srq(uint32_t max_wr, uint32_t max_sge, uint32_t limit, Pd *in, Srq **result)
{
	auto srq = std::make_unique<Srq>();

	srq->world = this;
	srq->pd = in ? in : &pd();
	if (srq->pd->user)
		srq->ring.make(max_wr, max_sge);
	int rc = rvt_core_srq_create(srq->pd->raw, max_wr, max_sge, limit, srq->ring.ring,
				     srq.get(), &srq->raw);

	if (rc) {
		srq->ring.drop();
		return rc;
	}
	srqs.push_back(std::move(srq));
	*result = srqs.back().get();
	return 0;
}

Srq &World::add_srq(uint32_t max_wr, uint32_t max_sge, uint32_t limit, Pd *in)
{
	Srq *srq = nullptr;

	check(try_srq(max_wr, max_sge, limit, in, &srq) == 0, "no SRQ");
	return *srq;
}

int World::try_qp(rvt_qp_type type, const QpOpts &opts, Pd *in, Qp **result)
{
	auto qp = std::make_unique<Qp>();

	if (opts.pd)
		in = opts.pd;
	qp->world = this;
	qp->pd = in ? in : &pd();
	qp->dev = qp->pd->dev;
	qp->type = type;
	qp->scq = opts.send_cq ? opts.send_cq : &add_cq(64, qp->dev);
	qp->rcq = opts.recv_cq ? opts.recv_cq : &add_cq(64, qp->dev);
	qp->srq = opts.srq;
	qp->init = {.type = type,
		    .cap = {opts.max_send_wr, opts.max_recv_wr, opts.max_send_sge,
			    opts.max_recv_sge, opts.max_inline},
		    .port_num = 1,
		    .sq_sig_all = opts.sq_sig_all,
		    .user = qp->pd->user,
		    .pd = qp->pd->raw,
		    .send_cq = qp->scq->raw,
		    .recv_cq = qp->rcq->raw,
		    .srq = opts.srq ? opts.srq->raw : nullptr,
		    .rq_ring = nullptr,
		    .ctx = qp.get()};

	int rc = rvt_core_qp_check_cap(&qp->init);

	if (rc)
		return rc;
	if (qp->pd->user && !opts.srq) {
		qp->ring.make(opts.max_recv_wr, opts.max_recv_sge);
		qp->init.rq_ring = qp->ring.ring;
	}
	rc = rvt_core_qp_create(qp->dev->raw, &qp->init, &qp->raw);
	if (rc) {
		qp->ring.drop();
		return rc;
	}
	qp->num = rvt_core_qp_num(qp->raw);

	rvt_qp_attr &a = qp->attr;

	a.pkey_index = 0;
	a.port_num = 1;
	a.access_flags = RVT_ACCESS_REMOTE_WRITE | RVT_ACCESS_REMOTE_READ |
			 RVT_ACCESS_REMOTE_ATOMIC;
	a.qkey = 0x11111111;
	a.path_mtu = 3;
	a.sq_psn = 0x100 + qp->num * 16;
	a.ah.port_num = 1;
	a.ah.dlid = qp->dev->lid;
	a.max_rd_atomic = 16;
	a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 12;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	qps.push_back(std::move(qp));
	*result = qps.back().get();
	return 0;
}

Qp &World::add_qp(rvt_qp_type type, const QpOpts &opts, Pd *in)
{
	Qp *qp = nullptr;

	check(try_qp(type, opts, in, &qp) == 0, "no queue pair");
	return *qp;
}

void World::connect(Qp &a, Qp &b)
{
	a.aim(b);
	b.aim(a);
	check(a.to_init() == 0 && a.to_rtr() == 0 && a.to_rts() == 0, "a is not connected");
	if (&a != &b)
		check(b.to_init() == 0 && b.to_rtr() == 0 && b.to_rts() == 0, "b is not connected");
}

std::pair<Qp *, Qp *> World::pair(rvt_qp_type type, const QpOpts &a, const QpOpts &b)
{
	Qp &first = add_qp(type, a);
	Qp &second = add_qp(type, b);

	connect(first, second);
	return {&first, &second};
}

Qp &World::add_ud(uint32_t qkey, const QpOpts &opts, Pd *in)
{
	Qp &qp = add_qp(RVT_QPT_UD, opts, in);

	qp.attr.qkey = qkey;
	check(qp.to_init() == 0 && qp.to_rtr() == 0 && qp.to_rts() == 0, "no UD queue pair");
	return qp;
}

Wr World::ud_to(const Qp &from, const Qp &to, uint64_t id, std::vector<rvt_sge> sge, uint32_t op)
{
	Wr wr = {.id = id, .op = op, .sge = std::move(sge)};

	wr.ah = rvt_ah_attr{};
	wr.ah->dlid = to.dev->lid;
	wr.ah->port_num = 1;
	wr.ah_pd = from.pd->raw;
	wr.remote_qpn = to.num;
	wr.qkey = to.attr.qkey;
	return wr;
}
