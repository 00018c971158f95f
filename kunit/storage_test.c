// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What storage drivers do. A host maps its buffer, makes it valid (REG_MR) and
 * sends a command with the key; the target moves the data by READ or WRITE and
 * answers by SEND, which mostly takes the key back (SEND_WITH_INV); else the host
 * does (LOCAL_INV). Everything goes on from completion handlers, so in the
 * context in which ib_core polls, of which there are four. At the end both queue
 * pairs are drained, and what was posted has completed, once each.
 *
 * How long a test takes is a matter of commands, not of time.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>

#include "harness.h"
#include "suites.h"

enum {
	BYTES = 2 * PAGE_SIZE,
	CLIENTS_PER_CPU = 2,
	RECEIVES = 2,
};

static unsigned int storage_commands = 1500;
module_param(storage_commands, uint, 0444);
MODULE_PARM_DESC(storage_commands, "commands of each client of the rvt_storage suite");

/* As it goes over the fabric. */
struct command {
	u64 addr;
	u32 rkey;
	u32 len;
	u32 number;
};

/* The host writes what has an odd number; each third key it takes back itself. */
static bool is_write(u32 number)
{
	return number & 1;
}

static bool target_invalidates(u32 number)
{
	return number % 3;
}

struct end {
	struct rig_qp qp;
	struct ib_cq *cq;
	u8 *data; /* the host's is what the region maps */
	struct command *out, *in;
	struct ib_cqe sent, received, moved, registered, invalidated;
	atomic_t posted, completed; /* those that are to complete */
};

struct client {
	struct end host, target;
	struct ib_mr *mr;
	struct scatterlist sg;
	u8 *expected;
	u32 number; /* of the command on its way */
	bool draining;
	int error;
	const char *where;
	struct completion ended;
	struct task_struct *task;
};

static void stop(struct client *c, const char *where, int error)
{
	if (error && !c->error) {
		c->error = error;
		c->where = where;
	}
	complete_all(&c->ended);
}

/* Count a completion. Return: whether it is a success to go on from. */
static bool good(struct client *c, struct end *e, const struct ib_wc *wc, const char *where)
{
	atomic_inc(&e->completed);
	if (wc->status == IB_WC_SUCCESS)
		return true;
	if (wc->status != IB_WC_WR_FLUSH_ERR || !READ_ONCE(c->draining))
		stop(c, where, -EIO);
	return false;
}

static void post_receive(struct client *c, struct end *e)
{
	struct ib_sge sge = { (uintptr_t)e->in, sizeof(*e->in), e->qp.qp->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &e->received, .sg_list = &sge, .num_sge = 1 };
	int ret;

	atomic_inc(&e->posted);
	ret = ib_post_recv(e->qp.qp, &wr, NULL);
	if (ret) {
		atomic_dec(&e->posted);
		stop(c, "post_recv", ret);
	}
}

/* A chain whose last request alone is signalled. */
static void post(struct client *c, struct end *e, struct ib_send_wr *first, const char *where)
{
	int ret;

	atomic_inc(&e->posted);
	ret = ib_post_send(e->qp.qp, first, NULL);
	if (ret) {
		atomic_dec(&e->posted);
		stop(c, where, ret);
	}
}

static struct ib_sge piece(struct end *e, void *at, u32 len)
{
	return (struct ib_sge){ (uintptr_t)at, len, e->qp.qp->pd->local_dma_lkey };
}

/* --- the host ------------------------------------------------------------------- */

static void next_command(struct client *c)
{
	struct end *e = &c->host;
	struct ib_sge sge = piece(e, e->out, sizeof(*e->out));
	u32 len = 1 + c->number * 37 % BYTES;
	struct ib_send_wr send = {
		.wr_cqe = &e->sent,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_reg_wr reg = {
		.wr = { .next = &send, .wr_cqe = &e->registered, .opcode = IB_WR_REG_MR },
		.mr = c->mr,
		.access = is_write(c->number) ? IB_ACCESS_REMOTE_READ :
						IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	ib_update_fast_reg_key(c->mr, c->number);
	reg.key = c->mr->rkey;
	if (ib_map_mr_sg(c->mr, &c->sg, 1, NULL, PAGE_SIZE) != 1)
		return stop(c, "map_mr_sg", -EINVAL);
	rig_fill(c->expected, len, c->number);
	if (is_write(c->number))
		memcpy(e->data, c->expected, len);
	else
		memset(e->data, 0, len);
	*e->out = (struct command){ c->mr->iova, c->mr->rkey, len, c->number };
	post_receive(c, e);
	post(c, e, &reg.wr, "REG_MR and SEND");
}

static void command_done(struct client *c)
{
	if (!is_write(c->number) && memcmp(c->host.data, c->expected, c->host.out->len))
		return stop(c, "data read", -EBADMSG);
	if (++c->number == storage_commands)
		return stop(c, NULL, 0);
	next_command(c);
}

static void host_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, host.received);
	struct ib_send_wr inv = {
		.wr_cqe = &c->host.invalidated,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = c->mr->rkey,
	};

	if (!good(c, &c->host, wc, "host receives"))
		return;
	if (!target_invalidates(c->number))
		return post(c, &c->host, &inv, "LOCAL_INV");
	if (!(wc->wc_flags & IB_WC_WITH_INVALIDATE) || wc->ex.invalidate_rkey != c->mr->rkey)
		return stop(c, "the key taken back", -EBADMSG);
	command_done(c);
}

static void host_invalidated(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, host.invalidated);

	if (good(c, &c->host, wc, "LOCAL_INV"))
		command_done(c);
}

static void host_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, host.sent);

	good(c, &c->host, wc, "host sends");
}

/* Not signalled: only an error comes here. */
static void host_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	stop(container_of(wc->wr_cqe, struct client, host.registered), "REG_MR", -EIO);
}

/* --- the target ------------------------------------------------------------------ */

/* With @write the data goes first; both are one chain. */
static void respond(struct client *c, struct ib_rdma_wr *write)
{
	struct end *e = &c->target;
	struct ib_send_wr send = {
		.wr_cqe = &e->sent,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (target_invalidates(e->in->number)) {
		send.opcode = IB_WR_SEND_WITH_INV;
		send.ex.invalidate_rkey = e->in->rkey;
	}
	if (write)
		write->wr.next = &send;
	post(c, e, write ? &write->wr : &send, "response");
}

static void target_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, target.received);
	struct end *e = &c->target;
	struct ib_sge sge = piece(e, e->data, e->in->len);
	struct ib_rdma_wr rdma = {
		.wr = { .wr_cqe = &e->moved, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = e->in->addr,
		.rkey = e->in->rkey,
	};

	if (!good(c, e, wc, "target receives"))
		return;
	post_receive(c, e);
	if (is_write(e->in->number)) {
		rdma.wr.opcode = IB_WR_RDMA_READ;
		rdma.wr.send_flags = IB_SEND_SIGNALED;
		post(c, e, &rdma.wr, "READ");
	} else {
		rdma.wr.opcode = IB_WR_RDMA_WRITE;
		rig_fill(e->data, e->in->len, e->in->number);
		respond(c, &rdma);
	}
}

static void target_moved(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, target.moved);

	if (!good(c, &c->target, wc, "READ"))
		return;
	if (memcmp(c->target.data, c->expected, c->target.in->len))
		return stop(c, "data written", -EBADMSG);
	respond(c, NULL);
}

static void target_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct client *c = container_of(wc->wr_cqe, struct client, target.sent);

	good(c, &c->target, wc, "target sends");
}

/* --- a client's life ---------------------------------------------------------------- */

static void end_init(struct rig *rig, struct end *e, enum ib_poll_context context, int vector)
{
	struct kunit *test = rig->test;
	struct ib_qp_init_attr init = {
		/* More than are on their way, and the drain's. */
		.cap = { .max_send_wr = 8, .max_recv_wr = RECEIVES + 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	e->cq = ib_alloc_cq(rig->dev, NULL, 16, vector, context);
	KUNIT_ASSERT_FALSE(test, IS_ERR(e->cq));
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp.rig = rig;
	e->qp.type = IB_QPT_RC;
	e->qp.qp = ib_create_qp(rig->pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(e->qp.qp));
	e->qp.num = e->qp.qp->qp_num;
	e->out = rig_buf(rig, sizeof(*e->out));
	e->in = rig_buf(rig, sizeof(*e->in));
	e->data = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(BYTES));
	KUNIT_ASSERT_NOT_NULL(test, e->data);
}

static void client_init(struct rig *rig, struct client *c, enum ib_poll_context context, int cpu)
{
	struct kunit *test = rig->test;
	int vector = cpu % rig->dev->num_comp_vectors;

	init_completion(&c->ended);
	end_init(rig, &c->host, context, vector);
	end_init(rig, &c->target, context, vector);
	c->host.sent.done = host_sent;
	c->host.received.done = host_received;
	c->host.registered.done = host_registered;
	c->host.invalidated.done = host_invalidated;
	c->target.sent.done = target_sent;
	c->target.received.done = target_received;
	c->target.moved.done = target_moved;
	c->expected = rig_buf(rig, BYTES);
	c->mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, BYTES / PAGE_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(c->mr));
	sg_init_one(&c->sg, c->host.data, BYTES);
	KUNIT_ASSERT_EQ(test, 1, ib_dma_map_sg(rig->dev, &c->sg, 1, DMA_BIDIRECTIONAL));
	rig_bring(&c->host.qp, IB_QPS_RTS, &c->target.qp);
	rig_bring(&c->target.qp, IB_QPS_RTS, &c->host.qp);
	post_receive(c, &c->target);
}

static int client_main(void *arg)
{
	struct client *c = arg;

	next_command(c);
	if (c->host.cq->poll_ctx == IB_POLL_DIRECT) {
		/* Where there is one CPU, the device needs it too. */
		while (!completion_done(&c->ended)) {
			ib_process_cq_direct(c->host.cq, -1);
			ib_process_cq_direct(c->target.cq, -1);
			schedule();
		}
	}
	wait_for_completion(&c->ended);
	WRITE_ONCE(c->draining, true);
	ib_drain_qp(c->host.qp.qp);
	ib_drain_qp(c->target.qp.qp);
	/* The test joins it. */
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void end_exit(struct end *e)
{
	ib_destroy_qp(e->qp.qp);
	ib_free_cq(e->cq);
	free_pages((unsigned long)e->data, get_order(BYTES));
}

static void client_exit(struct rig *rig, struct client *c)
{
	struct kunit *test = rig->test;

	KUNIT_EXPECT_EQ_MSG(test, c->error, 0, "at %s of command %u", c->where, c->number);
	KUNIT_EXPECT_EQ(test, c->number, storage_commands);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->host.posted), atomic_read(&c->host.completed));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->target.posted), atomic_read(&c->target.completed));
	ib_dma_unmap_sg(rig->dev, &c->sg, 1, DMA_BIDIRECTIONAL);
	end_exit(&c->host);
	end_exit(&c->target);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(c->mr));
}

static void on_every_cpu(struct kunit *test, enum ib_poll_context context)
{
	struct rig *rig = rig_of(test);
	int n = CLIENTS_PER_CPU * num_online_cpus(), i, cpu;
	struct client *clients = kunit_kzalloc(test, n * sizeof(*clients), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clients);
	for (i = 0; i < n; i++) {
		struct client *c = &clients[i];

		cpu = cpumask_nth(i % num_online_cpus(), cpu_online_mask);
		client_init(rig, c, context, cpu);
		c->task = kthread_create(client_main, c, "rvt_storage/%d", cpu);
		KUNIT_ASSERT_FALSE(test, IS_ERR(c->task));
		kthread_bind(c->task, cpu);
	}
	for (i = 0; i < n; i++)
		wake_up_process(clients[i].task);
	for (i = 0; i < n; i++) {
		wait_for_completion(&clients[i].ended);
		kthread_stop(clients[i].task);
		client_exit(rig, &clients[i]);
	}
	kunit_info(test, "%d clients, %u commands each\n", n, storage_commands);
}

static void softirq(struct kunit *test)
{
	on_every_cpu(test, IB_POLL_SOFTIRQ);
}

static void workqueue(struct kunit *test)
{
	on_every_cpu(test, IB_POLL_WORKQUEUE);
}

static void unbound_workqueue(struct kunit *test)
{
	on_every_cpu(test, IB_POLL_UNBOUND_WORKQUEUE);
}

static void direct(struct kunit *test)
{
	on_every_cpu(test, IB_POLL_DIRECT);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(softirq),
	KUNIT_CASE(workqueue),
	KUNIT_CASE(unbound_workqueue),
	KUNIT_CASE(direct),
	{}
};

RIG_SUITE(rvt_storage, cases);
