/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * world.h - what a program and the verbs shims are to the core, for tests.
 *
 * The tests play the user: they own the mapped rings, write and read their
 * indices with atomics, and own the memory that regions are made of. Every
 * page of it and every ring is an allocation of its own, so that
 * AddressSanitizer sees one byte too far.
 */
#ifndef RVT_WORLD_H
#define RVT_WORLD_H

#include <rvt/core.h>

#include "sim/machine.h"

#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

class World;
class Device;
class Qp;

constexpr uint32_t page_size = 4096;

constexpr uint32_t access_all = RVT_ACCESS_LOCAL_WRITE | RVT_ACCESS_REMOTE_WRITE |
				RVT_ACCESS_REMOTE_READ | RVT_ACCESS_REMOTE_ATOMIC;

/* Bytes that live in pages of their own, in no order and never adjacent. */
class Mem
{
public:
	explicit Mem(size_t bytes);
	~Mem();
	Mem(const Mem &) = delete;

	size_t size() const { return bytes_; }
	uint8_t *page(size_t i) const { return pages_[i]; }
	size_t pages() const { return pages_.size(); }
	uint8_t *at(size_t offset) const { return pages_[offset / page_size] + offset % page_size; }
	void write(size_t offset, const std::string &bytes);
	std::string read(size_t offset, size_t n) const;
	void fill(char c);
	uint64_t word(size_t offset) const;
	void set_word(size_t offset, uint64_t value);

private:
	size_t bytes_;
	std::vector<uint8_t *> pages_;
};

/* @n bytes that differ from their neighbours and from those of another @seed. */
std::string pattern(size_t n, unsigned int seed = 1);

class Pd
{
public:
	World *world;
	Device *dev;
	rvt_core_pd *raw;
	bool user;
};

class Mr
{
public:
	World *world;
	Pd *owner;
	Mem *mem;
	rvt_core_mr *raw;
	uint64_t iova;
	uint64_t length;
	uint32_t key;

	rvt_sge sge(uint64_t offset, uint32_t n) const { return {iova + offset, n, key}; }
	rvt_sge sge() const { return {iova, static_cast<uint32_t>(length), key}; }
	/* Contents by offset in the region. */
	std::string read(uint64_t offset, size_t n) const
	{
		return mem->read((iova & (page_size - 1)) + offset, n);
	}
	void write(uint64_t offset, const std::string &bytes) const
	{
		mem->write((iova & (page_size - 1)) + offset, bytes);
	}
	void fill(char c) const { mem->fill(c); }
	uint64_t word(uint64_t offset) const
	{
		return mem->word((iova & (page_size - 1)) + offset);
	}
	void set_word(uint64_t offset, uint64_t value) const
	{
		mem->set_word((iova & (page_size - 1)) + offset, value);
	}
	void destroy();
};

class Cq
{
public:
	World *world;
	rvt_core_cq *raw = nullptr;
	rvt_cq_ring *ring = nullptr; /* NULL: a kernel queue */
	uint32_t cqe = 0;
	unsigned int upcalls = 0;
	std::vector<rvt_event> events;
	std::function<void()> on_upcall;

	/* The next completion. Lets pending work finish first. */
	std::optional<rvt_wc> poll();
	/* Without letting anything run. */
	std::optional<rvt_wc> poll_now();
	std::vector<rvt_wc> poll_all();
	uint32_t waiting();
	int arm(bool solicited = false, bool report = false)
	{
		return rvt_core_cq_arm(raw, solicited, report);
	}
	int resize(uint32_t cqe);
	void destroy();
};

/* A receive ring that the user writes: of a queue pair or of an SRQ. */
class RecvRing
{
public:
	rvt_rq_ring *ring = nullptr;
	uint32_t size = 0; /* entries, one of them always empty */
	uint32_t max_sge = 0;

	void make(uint32_t max_wr, uint32_t max_sge);
	void drop();
	rvt_rwqe *entry(uint32_t i) const
	{
		return reinterpret_cast<rvt_rwqe *>(ring->data + i * rvt_rwqe_size(max_sge));
	}
	int post(uint64_t wr_id, const std::vector<rvt_sge> &sge);
	uint32_t head() const { return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE); }
	uint32_t tail() const { return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE); }
	uint32_t fill() const { return (head() + size - tail()) % size; }
};

class Srq
{
public:
	World *world;
	Pd *pd;
	rvt_core_srq *raw = nullptr;
	RecvRing ring;
	std::vector<rvt_event> events;

	int recv(uint64_t wr_id, const std::vector<rvt_sge> &sge);
	int resize(uint32_t max_wr, const uint32_t *limit = nullptr);
	uint32_t limit();
	void destroy();
};

/* A send work request. */
struct Wr {
	uint64_t id = 0;
	uint32_t op = RVT_WR_SEND;
	uint32_t flags = RVT_SEND_SIGNALED;
	std::vector<rvt_sge> sge = {};
	uint64_t raddr = 0;
	uint32_t rkey = 0;
	uint32_t imm = 0;
	uint64_t compare_add = 0;
	uint64_t swap = 0;
	std::optional<rvt_ah_attr> ah = {};
	const rvt_core_pd *ah_pd = nullptr;
	uint32_t remote_qpn = 0;
	uint32_t qkey = 0;
	uint16_t pkey_index = 0;
	rvt_core_mr *mr = nullptr;
	uint32_t key = 0;
	uint32_t access = 0;
	std::string inline_data = {};
};

Wr wr_send(uint64_t id, std::vector<rvt_sge> sge, uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_send_imm(uint64_t id, std::vector<rvt_sge> sge, uint32_t imm,
	       uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_send_inv(uint64_t id, std::vector<rvt_sge> sge, uint32_t rkey);
Wr wr_write(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey,
	    uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_write_imm(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey, uint32_t imm,
		uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_read(uint64_t id, std::vector<rvt_sge> sge, uint64_t raddr, uint32_t rkey,
	   uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_cas(uint64_t id, rvt_sge sge, uint64_t raddr, uint32_t rkey, uint64_t compare, uint64_t swap);
Wr wr_faa(uint64_t id, rvt_sge sge, uint64_t raddr, uint32_t rkey, uint64_t add);
Wr wr_local_inv(uint64_t id, uint32_t key, uint32_t flags = RVT_SEND_SIGNALED);
Wr wr_reg(uint64_t id, rvt_core_mr *mr, uint32_t key, uint32_t access,
	  uint32_t flags = RVT_SEND_SIGNALED);

/* What a queue pair is created with. */
struct QpOpts {
	uint32_t max_send_wr = 16;
	uint32_t max_recv_wr = 16;
	uint32_t max_send_sge = 4;
	uint32_t max_recv_sge = 4;
	uint32_t max_inline = 0;
	bool sq_sig_all = false;
	Srq *srq = nullptr;
	Cq *send_cq = nullptr;
	Cq *recv_cq = nullptr;
	Pd *pd = nullptr;
};

class Qp
{
public:
	World *world;
	Device *dev;
	Pd *pd;
	rvt_core_qp *raw = nullptr;
	rvt_qp_type type;
	rvt_qp_init init = {};
	RecvRing ring;
	Cq *scq;
	Cq *rcq;
	Srq *srq = nullptr;
	std::vector<rvt_event> events;
	std::function<void(rvt_event)> on_event;
	/* Numbers the sends, under the producer lock, instead of what they say. */
	std::function<uint64_t(const Wr &)> number;
	std::function<void(uint64_t)> refused;
	/* What the helpers below modify with; tests change it beforehand. */
	rvt_qp_attr attr = {};
	uint32_t num = 0;

	int modify(uint32_t mask)
	{
		/* Another task may change attr meanwhile. */
		const rvt_qp_attr now = attr;

		return rvt_core_qp_modify(raw, &now, mask);
	}
	int to(rvt_qp_state state, uint32_t mask = 0);
	int to_init();
	/* Address the peer and expect its PSN. */
	void aim(const Qp &peer);
	int to_rtr();
	int to_rts();
	rvt_qp_attr query();
	rvt_qp_state state() { return query().state; }
	rvt_qp_stat stat();

	int post(const Wr &wr) { return post(std::vector<Wr>{wr}, nullptr); }
	/* A chain: posts until the first that fails; how many were posted. */
	int post(const std::vector<Wr> &chain, size_t *posted);
	/* Into the mapped ring, or by the core's call for kernel queue pairs. */
	int recv(uint64_t wr_id, const std::vector<rvt_sge> &sge);
	size_t count(rvt_event event) const;
	void destroy();
};

class Device
{
public:
	World *world;
	rvt_core_dev *raw = nullptr;
	uint64_t guid;
	uint16_t lid = 0;
	uint8_t gid[16];

	uint64_t counter(rvt_counter which);
	unsigned int destroy();
};

class World
{
public:
	sim::Machine m;
	/* @user: a user's objects with mapped rings; else a kernel consumer's. */
	explicit World(bool user = true, unsigned int devices = 1, uint64_t seed = 0);
	~World();

	bool user;
	std::vector<std::unique_ptr<Device>> devs;
	Device &dev() { return *devs[0]; }
	Device &add_device();
	/* The first device's first protection domain. */
	Pd &pd() { return *pds.front(); }

	Pd &add_pd(Device &dev, bool user);
	Pd &add_pd() { return add_pd(dev(), user); }
	Mem &add_mem(size_t bytes);
	/* Memory of its own, pages permuted; @iova 0: the next free one. */
	Mr &add_mr(size_t bytes, uint32_t access = access_all, Pd *pd = nullptr, uint64_t iova = 0);
	Mr &add_fast_mr(size_t bytes, Pd *pd = nullptr);
	Cq &add_cq(uint32_t cqe = 64, Device *dev = nullptr);
	Srq &add_srq(uint32_t max_wr = 16, uint32_t max_sge = 4, uint32_t limit = 0,
		     Pd *pd = nullptr);
	Qp &add_qp(rvt_qp_type type, const QpOpts &opts = {}, Pd *pd = nullptr);
	/* The same without stopping at an error. */
	int try_qp(rvt_qp_type type, const QpOpts &opts, Pd *pd, Qp **qp);
	int try_cq(uint32_t cqe, Device *dev, Cq **cq);
	int try_srq(uint32_t max_wr, uint32_t max_sge, uint32_t limit, Pd *pd, Srq **srq);

	/* Both to RTS, each with the other as its peer. */
	void connect(Qp &a, Qp &b);
	std::pair<Qp *, Qp *> pair(rvt_qp_type type = RVT_QPT_RC, const QpOpts &a = {},
				   const QpOpts &b = {});
	/* A UD queue pair in RTS. */
	Qp &add_ud(uint32_t qkey = 0x11111111, const QpOpts &opts = {}, Pd *pd = nullptr);
	/* Where a UD message to this queue pair goes. */
	Wr ud_to(const Qp &from, const Qp &to, uint64_t id, std::vector<rvt_sge> sge,
		 uint32_t op = RVT_WR_SEND);
	void check(bool ok, const char *what)
	{
		if (!ok)
			m.fail("%s", what);
	}

	std::list<std::unique_ptr<Pd>> pds;
	std::list<std::unique_ptr<Mem>> mems;
	std::list<std::unique_ptr<Mr>> mrs;
	std::list<std::unique_ptr<Cq>> cqs;
	std::list<std::unique_ptr<Srq>> srqs;
	std::list<std::unique_ptr<Qp>> qps;

private:
	uint64_t next_iova_ = 0x7f0000000000;
	uint64_t next_guid_ = 0x0200c0fffe000001;
};

#endif
