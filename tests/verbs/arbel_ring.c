// SPDX-License-Identifier: BSD-2-Clause
// A second reader of our completion queues: traffic of every opcode and error, read from the ring
// by a decoder that knows nothing but the bit table of Arbel's completion queue entry. The CQs read
// here are never polled with verbs.
#include "pair.h"
#include "weft/weft.h"
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

// struct arbelprm_completion_queue_entry_st: fields in order, least significant bit of the dword
// first; widths in bits.
static const struct {
    const char *name;
    unsigned width;
} table[] = {
    {"my_qpn", 0x18},     {"reserved0", 0x04},
    {"ver", 0x04},        {"my_ee", 0x18},
    {"checksum_15_8", 8}, {"rqpn", 0x18},
    {"checksum_7_0", 8},  {"rlid", 0x10},
    {"ml_path", 0x07},    {"g", 0x01},
    {"ipok", 0x01},       {"reserved1", 0x03},
    {"sl", 0x04},         {"immediate_ethertype_pkey_indx_eecredits", 0x20},
    {"byte_cnt", 0x20},   {"reserved2", 0x06},
    {"wqe_adr", 0x1a},    {"reserved3", 0x07},
    {"owner", 0x01},      {"reserved4", 0x0f},
    {"s", 0x01},          {"opcode", 0x08},
};

static uint32_t field(const uint8_t *entry, const char *name)
{
    unsigned bit = 0;

    for (unsigned i = 0; i < sizeof(table) / sizeof(*table); bit += table[i++].width) {
        const uint8_t *dw = entry + bit / 32 * 4;
        uint32_t value =
            (uint32_t)dw[0] << 24 | (uint32_t)dw[1] << 16 | (uint32_t)dw[2] << 8 | dw[3];

        if (strcmp(table[i].name, name))
            continue;
        value >>= bit % 32;
        return table[i].width == 32 ? value : value & ((1u << table[i].width) - 1);
    }
    die_at(__FILE__, __LINE__, name);
}

static void check_reserved(const uint8_t *entry)
{
    static const char *const zero[] = {"reserved0",    "ver",   "my_ee",     "checksum_15_8",
                                       "checksum_7_0", "ipok",  "reserved1", "reserved2",
                                       "reserved3",    "owner", "reserved4"};

    for (unsigned i = 0; i < sizeof(zero) / sizeof(*zero); i++)
        must(field(entry, zero[i]) == 0);
}

// The next entry of the CQ's ring, copied out and given back.
static void take(struct ibv_cq *cq, uint8_t entry[32])
{
    uint64_t end = now_ms() + 10000;
    struct weft_cq_ring ring;
    uint8_t *at;

    must(weft_cq_ring(cq, &ring) == 0);
    must(ring.entries && (ring.entries & (ring.entries - 1)) == 0);
    at = (uint8_t *)ring.cqe + 32 * (*ring.consumer & (ring.entries - 1));
    while (__atomic_load_n(at + 31, __ATOMIC_ACQUIRE) & 0x80) {
        must(now_ms() < end);
        sched_yield();
    }
    memcpy(entry, at, 32);
    __atomic_store_n(at + 31, 0x80, __ATOMIC_RELEASE);
    __atomic_store_n(ring.consumer, *ring.consumer + 1, __ATOMIC_RELEASE);
    check_reserved(entry);
}

static void expect_send(struct end *e, uint32_t opcode, uint32_t bytes)
{
    uint8_t entry[32];

    take(e->scq, entry);
    must(field(entry, "opcode") == opcode);
    must(field(entry, "s") == 1);
    must(field(entry, "my_qpn") == e->qp->qp_num);
    if (bytes)
        must(field(entry, "byte_cnt") == bytes);
}

// The opcode of the last packet: "last" or, inside a host where messages travel whole, "only".
static bool ends_message(uint32_t opcode, uint32_t only)
{
    static const uint8_t last[] = {[0x04] = 0x02, [0x05] = 0x03, [0x0b] = 0x09, [0x17] = 0x16};

    return (opcode & 0x1f) == only || (opcode & 0x1f) == last[only];
}

static void expect_recv(struct end *e, uint32_t only, uint32_t bytes, uint32_t imm)
{
    uint8_t entry[32];

    take(e->rcq, entry);
    must(field(entry, "opcode") < 0xfe && ends_message(field(entry, "opcode"), only));
    must(field(entry, "s") == 0);
    must(field(entry, "my_qpn") == e->qp->qp_num);
    must(field(entry, "byte_cnt") == bytes);
    must(field(entry, "rlid") == 0);
    if (imm)
        must(field(entry, "immediate_ethertype_pkey_indx_eecredits") == imm);
    if (e->qp->qp_type == IBV_QPT_UD) {
        must(field(entry, "g") == 1);
        must(field(entry, "rqpn") != 0);
    }
}

static void expect_error(struct ibv_cq *cq, uint32_t qpn, bool send, uint32_t syndrome)
{
    uint8_t entry[32];

    take(cq, entry);
    must(field(entry, "opcode") == (send ? 0xffu : 0xfeu));
    must(field(entry, "my_qpn") == qpn);
    if (syndrome != field(entry, "immediate_ethertype_pkey_indx_eecredits") >> 24)
        printf("syndrome 0x%02x\n", field(entry, "immediate_ethertype_pkey_indx_eecredits") >> 24);
    must(field(entry, "immediate_ethertype_pkey_indx_eecredits") >> 24 == syndrome);
    must((field(entry, "immediate_ethertype_pkey_indx_eecredits") & 0xffff) == 0);
    must(field(entry, "byte_cnt") == 0 && field(entry, "s") == 0);
}

static struct ibv_send_wr request(struct end *e, struct end *to, enum ibv_wr_opcode opcode,
                                  struct ibv_sge *sge, uint32_t len)
{
    struct ibv_send_wr wr = {.sg_list = sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htonl(0x11223344)};

    *sge = sge_of(e, 0, len);
    wr.wr.rdma.remote_addr = (uintptr_t)to->mem;
    wr.wr.rdma.rkey = to->node->mr->rkey;
    return wr;
}

static void send_one(struct end e[2], enum ibv_wr_opcode opcode, uint32_t len)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&e[0], &e[1], opcode, &sge, len);

    must(post(&e[0], &wr) == 0);
}

static void atomic_one(struct end e[2], enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&e[0], &e[1], opcode, &sge, 8);

    wr.wr.atomic.remote_addr = (uintptr_t)e[1].mem;
    wr.wr.atomic.compare_add = 1;
    wr.wr.atomic.swap = 2;
    wr.wr.atomic.rkey = e[1].node->mr->rkey;
    must(post(&e[0], &wr) == 0);
}

static void connected(struct node *n, enum ibv_qp_type type)
{
    struct pair_opts o = {.type = type};
    struct end e[2] = {0};

    pair_make(n, e, &o);
    post_recv(&e[1], 1, 4096);
    send_one(e, IBV_WR_SEND, 100);
    expect_send(&e[0], 0x0a, 0);
    expect_recv(&e[1], 0x04, 100, 0);
    post_recv(&e[1], 2, 4096);
    send_one(e, IBV_WR_SEND_WITH_IMM, 3000); // three packets on a wire
    expect_send(&e[0], 0x0b, 0);
    expect_recv(&e[1], 0x05, 3000, 0x11223344);
    send_one(e, IBV_WR_RDMA_WRITE, 5000);
    expect_send(&e[0], 0x08, 0);
    post_recv(&e[1], 3, 4096);
    send_one(e, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
    expect_send(&e[0], 0x09, 0);
    expect_recv(&e[1], 0x0b, 10, 0x11223344);
    if (type == IBV_QPT_RC) {
        send_one(e, IBV_WR_RDMA_READ, 5000);
        expect_send(&e[0], 0x10, 5000);
        atomic_one(e, IBV_WR_ATOMIC_CMP_AND_SWP);
        expect_send(&e[0], 0x11, 8);
        atomic_one(e, IBV_WR_ATOMIC_FETCH_AND_ADD);
        expect_send(&e[0], 0x12, 8);
    }
    pair_free(e);
}

static void bind_window(struct node *n)
{
    struct pair_opts o = {.type = IBV_QPT_RC};
    struct ibv_mw *mw = ibv_alloc_mw(n->pd, IBV_MW_TYPE_2);
    struct end e[2] = {0};
    uint32_t rkey;

    must(mw);
    rkey = ibv_inc_rkey(mw->rkey);
    pair_make(n, e, &o);
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = {mw, rkey, {n->mr, (uintptr_t)e[0].mem, 64, IBV_ACCESS_REMOTE_WRITE}},
    };
    must(post(&e[0], &wr) == 0);
    expect_send(&e[0], 0x18, 0);
    // The peer's SEND with invalidate: dword 4 holds the key.
    struct ibv_sge sge;
    struct ibv_send_wr inv = request(&e[1], &e[0], IBV_WR_SEND_WITH_INV, &sge, 8);
    inv.invalidate_rkey = rkey;
    post_recv(&e[0], 1, 64);
    must(post(&e[1], &inv) == 0);
    expect_send(&e[1], 0x0a, 0);
    expect_recv(&e[0], 0x17, 8, rkey);
    pair_free(e);
    must(ibv_dealloc_mw(mw) == 0);
}

static void datagram(struct node *n)
{
    struct pair_opts o = {.type = IBV_QPT_UD};
    struct ibv_ah_attr attr = {
        .grh = {.dgid = n->gid, .sgid_index = (uint8_t)n->gid_index, .hop_limit = 64},
        .is_global = 1,
        .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(n->pd, &attr);
    struct end e[2] = {0};
    struct ibv_sge sge;

    must(ah);
    pair_make(n, e, &o);
    struct ibv_send_wr wr = request(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, &sge, 500);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = e[1].qp->qp_num;
    wr.wr.ud.remote_qkey = 0x11111111;
    post_recv(&e[1], 1, 4096);
    must(post(&e[0], &wr) == 0);
    expect_send(&e[0], 0x0b, 0);
    expect_recv(&e[1], 0x05, 540, 0x11223344);
    pair_free(e);
    must(ibv_destroy_ah(ah) == 0);
}

// A request that fails and one behind it, which is flushed; the responder's receive, if any.
static void failing(struct node *n, struct pair_opts o, void (*spoil)(struct ibv_send_wr *wr),
                    uint32_t len, uint32_t syndrome, uint32_t recv_len, uint32_t recv_syndrome)
{
    struct end e[2] = {0};
    struct ibv_sge sge;

    pair_make(n, e, &o);
    if (recv_len)
        post_recv(&e[1], 1, recv_len);
    struct ibv_send_wr wr = request(&e[0], &e[1], IBV_WR_RDMA_WRITE, &sge, len);
    spoil(&wr);
    must(post(&e[0], &wr) == 0);
    expect_error(e[0].scq, e[0].qp->qp_num, true, syndrome);
    struct ibv_send_wr late = request(&e[0], &e[1], IBV_WR_SEND, &sge, 8);
    must(post(&e[0], &late) == 0);
    expect_error(e[0].scq, e[0].qp->qp_num, true, 0x05);
    if (recv_len)
        expect_error(e[1].rcq, e[1].qp->qp_num, false, recv_syndrome);
    pair_free(e);
}

static void bad_rkey(struct ibv_send_wr *wr)
{
    wr->wr.rdma.rkey ^= 0x5a00;
}
static void bad_lkey(struct ibv_send_wr *wr)
{
    wr->sg_list->lkey ^= 0x5a00;
}
static void as_send(struct ibv_send_wr *wr)
{
    wr->opcode = IBV_WR_SEND;
}
static void as_odd_atomic(struct ibv_send_wr *wr)
{
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.rkey = wr->wr.rdma.rkey;
    wr->wr.atomic.remote_addr += 4;
}

static void errors(struct node *n)
{
    struct pair_opts rc = {.type = IBV_QPT_RC};
    struct pair_opts no_rnr = {.type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 0};
    struct pair_opts nobody = {.type = IBV_QPT_RC, .timeout = 8, .retry = 1, .dest = 0xfff0};

    failing(n, rc, bad_rkey, 8, 0x13, 64, 0x05);
    failing(n, rc, bad_lkey, 8, 0x04, 0, 0);
    failing(n, rc, as_send, 100, 0x12, 64, 0x01); // longer than the receive
    failing(n, rc, as_odd_atomic, 8, 0x12, 0, 0);
    failing(n, no_rnr, as_send, 8, 0x16, 0, 0);
    failing(n, nobody, as_send, 8, 0x15, 0, 0);
}

// More entries than the ring and more requests than the send queue hold, and unsignalled ones
// between.
static void many(struct node *n)
{
    struct pair_opts o = {.type = IBV_QPT_RC};
    struct end e[2] = {0};
    struct weft_qp_wqes wqes;
    uint8_t entry[32];
    uint32_t posted = 0;

    pair_make(n, e, &o);
    must(weft_qp_wqes(e[0].qp, &wqes) == 0);
    for (int i = 0; i < 500; i++) {
        struct ibv_sge sge;
        struct ibv_send_wr wr = request(&e[0], &e[1], IBV_WR_RDMA_WRITE, &sge, 16);

        wr.send_flags = 0;
        for (int k = 0; k < i % 4; k++, posted++)
            must(post(&e[0], &wr) == 0);
        wr.send_flags = IBV_SEND_SIGNALED;
        must(post(&e[0], &wr) == 0);
        take(e[0].scq, entry);
        must(field(entry, "opcode") == 0x08);
        uint32_t slot = (field(entry, "wqe_adr") * 64 - wqes.send_offset) / wqes.send_stride;
        must(slot == posted++ % wqes.send_slots);
    }
    pair_free(e);
}

int main(void)
{
    struct node n;

    node_open(&n);
    connected(&n, IBV_QPT_RC);
    connected(&n, IBV_QPT_UC);
    datagram(&n);
    bind_window(&n);
    errors(&n);
    many(&n);
    node_close(&n);
    printf("every opcode and error read from the ring\n");
    return 0;
}
