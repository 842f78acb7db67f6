// SPDX-License-Identifier: BSD-2-Clause
#include "wire/headers.h"

enum { BTH_SE = 1 << 7, BTH_MIG = 1 << 6, BTH_FECN = 1 << 7, BTH_BECN = 1 << 6, BTH_ACK = 1 << 7 };

// IBA 9.2
void wf_get_bth(struct wf_reader *r, struct wf_pkt *pkt, struct wf_bth_extra *extra)
{
    pkt->opcode = wf_get_u8(r);
    uint8_t bits = wf_get_u8(r);
    pkt->flags |= (bits & BTH_SE ? WF_PKT_SOLICITED : 0) | (bits & BTH_MIG ? WF_PKT_MIG_REQ : 0);
    extra->pad = bits >> 4 & 3;
    extra->tver = bits & 0xf;
    pkt->pkey = wf_get_u16(r);
    bits = wf_get_u8(r);
    pkt->flags |= (bits & BTH_FECN ? WF_PKT_FECN : 0) | (bits & BTH_BECN ? WF_PKT_BECN : 0);
    pkt->dqpn = wf_get_u24(r);
    bits = wf_get_u8(r);
    pkt->flags |= bits & BTH_ACK ? WF_PKT_ACK_REQ : 0;
    pkt->psn = wf_get_u24(r);
}

void wf_put_bth(struct wf_writer *w, const struct wf_pkt *pkt, const struct wf_bth_extra *extra)
{
    wf_put_u8(w, pkt->opcode);
    wf_put_u8(w, (uint8_t)((pkt->flags & WF_PKT_SOLICITED ? BTH_SE : 0) |
                           (pkt->flags & WF_PKT_MIG_REQ ? BTH_MIG : 0) | (extra->pad & 3) << 4 |
                           (extra->tver & 0xf)));
    wf_put_u16(w, pkt->pkey);
    wf_put_u8(w, (uint8_t)((pkt->flags & WF_PKT_FECN ? BTH_FECN : 0) |
                           (pkt->flags & WF_PKT_BECN ? BTH_BECN : 0)));
    wf_put_u24(w, pkt->dqpn);
    wf_put_u8(w, pkt->flags & WF_PKT_ACK_REQ ? BTH_ACK : 0);
    wf_put_u24(w, pkt->psn);
}

static void get_xrceth(struct wf_reader *r, struct wf_pkt *pkt)
{
    wf_skip(r, 1);
    pkt->xrc_srqn = wf_get_u24(r);
}

static void put_xrceth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u8(w, 0);
    wf_put_u24(w, pkt->xrc_srqn);
}

static void get_deth(struct wf_reader *r, struct wf_pkt *pkt)
{
    pkt->qkey = wf_get_u32(r);
    wf_skip(r, 1);
    pkt->sqpn = wf_get_u24(r);
}

static void put_deth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u32(w, pkt->qkey);
    wf_put_u8(w, 0);
    wf_put_u24(w, pkt->sqpn);
}

static void get_feth(struct wf_reader *r, struct wf_pkt *pkt)
{
    pkt->feth = wf_get_u32(r) & 0x3f;
}

static void put_feth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u32(w, pkt->feth & 0x3f);
}

static void get_reth(struct wf_reader *r, struct wf_pkt *pkt)
{
    pkt->va = wf_get_u64(r);
    pkt->rkey = wf_get_u32(r);
    pkt->dma_len = wf_get_u32(r);
}

static void put_reth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u64(w, pkt->va);
    wf_put_u32(w, pkt->rkey);
    wf_put_u32(w, pkt->dma_len);
}

static void get_atomiceth(struct wf_reader *r, struct wf_pkt *pkt)
{
    pkt->va = wf_get_u64(r);
    pkt->rkey = wf_get_u32(r);
    pkt->swap_add = wf_get_u64(r);
    pkt->compare = wf_get_u64(r);
}

static void put_atomiceth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u64(w, pkt->va);
    wf_put_u32(w, pkt->rkey);
    wf_put_u64(w, pkt->swap_add);
    wf_put_u64(w, pkt->compare);
}

static void get_aeth(struct wf_reader *r, struct wf_pkt *pkt)
{
    pkt->syndrome = wf_get_u8(r);
    pkt->msn = wf_get_u24(r);
}

static void put_aeth(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_u8(w, pkt->syndrome);
    wf_put_u24(w, pkt->msn);
}

// Immediate data is opaque: the application's byte order is kept.
static void get_imm(struct wf_reader *r, struct wf_pkt *pkt)
{
    wf_get_bytes(r, &pkt->imm, sizeof(pkt->imm));
}

static void put_imm(struct wf_writer *w, const struct wf_pkt *pkt)
{
    wf_put_bytes(w, &pkt->imm, sizeof(pkt->imm));
}

void wf_get_ext(struct wf_reader *r, uint32_t flags, struct wf_pkt *pkt)
{
    if (flags & WF_H_XRCETH)
        get_xrceth(r, pkt);
    if (flags & WF_H_DETH)
        get_deth(r, pkt);
    if (flags & WF_H_FETH)
        get_feth(r, pkt);
    if (flags & WF_H_RETH)
        get_reth(r, pkt);
    if (flags & WF_H_ATOMICETH)
        get_atomiceth(r, pkt);
    if (flags & WF_H_AETH)
        get_aeth(r, pkt);
    if (flags & WF_H_ATOMICACK)
        pkt->atomic_orig = wf_get_u64(r);
    if (flags & WF_H_IMM)
        get_imm(r, pkt);
    if (flags & WF_H_IETH)
        pkt->ieth = wf_get_u32(r);
}

void wf_put_ext(struct wf_writer *w, uint32_t flags, const struct wf_pkt *pkt)
{
    if (flags & WF_H_XRCETH)
        put_xrceth(w, pkt);
    if (flags & WF_H_DETH)
        put_deth(w, pkt);
    if (flags & WF_H_FETH)
        put_feth(w, pkt);
    if (flags & WF_H_RETH)
        put_reth(w, pkt);
    if (flags & WF_H_ATOMICETH)
        put_atomiceth(w, pkt);
    if (flags & WF_H_AETH)
        put_aeth(w, pkt);
    if (flags & WF_H_ATOMICACK)
        wf_put_u64(w, pkt->atomic_orig);
    if (flags & WF_H_IMM)
        put_imm(w, pkt);
    if (flags & WF_H_IETH)
        wf_put_u32(w, pkt->ieth);
}
