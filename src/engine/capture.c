// SPDX-License-Identifier: BSD-2-Clause
// Captures: every packet as the RoCEv2 frames that a wire would have seen. Within the host a packet
// may be a whole message: here it is taken apart again.
#include "engine/tap.h"

#include "base/clock.h"
#include "base/guard.h"
#include "base/pcapng.h"
#include "base/record.h"
#include "link/remote.h"
#include "wire/frame.h"
#include "wire/opcode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OUT_ROOM   (256u << 10)
#define NOTE_ROOM  320u
#define BLOCK_ROOM (WF_FRAME_MAX + NOTE_ROOM + WF_PCAPNG_EXTRA)

struct wf_capture {
    pthread_mutex_t lock; // reasons come from threads without the engine's lock
    int fd;
    uint32_t snaplen;
    uint64_t id;
    size_t ring;  // flight recorder: bytes kept; 0: none
    uint8_t *out; // blocks that wait; of the recorder a ring of whole blocks
    size_t len, room;
    char reason[200];    // for the next frame's comment
    _Atomic bool failed; // something failed: the recorder is to be written
};

static uint64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * WF_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void write_out(struct wf_capture *c)
{
    if (c->len)
        (void)!write(c->fd, c->out, c->len);
    c->len = 0;
}

// The oldest blocks go until n bytes fit. Each block says its length in its second word.
static void make_room(struct wf_capture *c, size_t n)
{
    size_t at = 0;
    while (c->len - at + n > c->room && at < c->len) {
        uint32_t len;
        memcpy(&len, c->out + at + 4, sizeof(len));
        at += len;
    }
    memmove(c->out, c->out + at, c->len - at);
    c->len -= at;
}

static void add_block(struct wf_capture *c, const uint8_t *frame, size_t len, const char *note)
{
    uint32_t cap = c->snaplen && c->snaplen < len ? c->snaplen : (uint32_t)len;
    if (c->len + BLOCK_ROOM > c->room) {
        if (c->ring)
            make_room(c, c->room / 4);
        else
            write_out(c);
    }
    c->len += wf_pcapng_packet(c->out + c->len, c->room - c->len, wall_ns(), frame, cap,
                               (uint32_t)len, note);
}

static void message_done(struct wf_capture *c)
{
    if (!c->ring || c->failed)
        write_out(c);
    c->failed = false;
}

// ---- frames of a packet -------------------------------------------------------------------------

struct source {
    const struct wf_pkt *pkt;
    struct wf_frame frame;
    const char *note;
};

static void read_payload(const struct wf_pkt *pkt, uint32_t off, uint8_t *to, uint32_t len)
{
    if (pkt->remote) {
        struct iovec iov = {to, len};
        if (wf_remote_copy(pkt->remote, off, &iov, 1))
            memset(to, 0, len);
        return;
    }
    for (int i = 0; i < pkt->niov && len; i++) {
        size_t n = pkt->iov[i].iov_len;
        if (off >= n) {
            off -= (uint32_t)n;
            continue;
        }
        n = n - off < len ? n - off : len;
        if (!pkt->iov[i].iov_base ||
            wf_guard_copy(to, (const uint8_t *)pkt->iov[i].iov_base + off, n))
            memset(to, 0, n);
        to += n;
        len -= (uint32_t)n;
        off = 0;
    }
}

// Which packet of a message it would be on the wire. Names of operations: first, middle, last,
// only.
static uint8_t piece_operation(uint8_t op, bool first, bool last)
{
    bool was_first, was_last;
    uint8_t base;
    switch (op) {
    case WF_OP_SEND_FIRST:
    case WF_OP_SEND_MIDDLE:
    case WF_OP_SEND_LAST:
    case WF_OP_SEND_LAST_IMM:
    case WF_OP_SEND_ONLY:
    case WF_OP_SEND_ONLY_IMM:
    case WF_OP_SEND_LAST_INV:
    case WF_OP_SEND_ONLY_INV:
        base = WF_OP_SEND_FIRST;
        break;
    case WF_OP_READ_RESP_FIRST:
    case WF_OP_READ_RESP_MIDDLE:
    case WF_OP_READ_RESP_LAST:
    case WF_OP_READ_RESP_ONLY:
        base = WF_OP_READ_RESP_FIRST;
        break;
    default:
        base = WF_OP_WRITE_FIRST;
        break;
    }
    uint32_t flags = wf_opcode_info(op)->flags; // of RC: the same for all services
    was_first = flags & WF_F_FIRST;
    was_last = flags & WF_F_LAST;
    if (base == WF_OP_READ_RESP_FIRST) {
        was_first = op == WF_OP_READ_RESP_FIRST || op == WF_OP_READ_RESP_ONLY;
        was_last = op == WF_OP_READ_RESP_LAST || op == WF_OP_READ_RESP_ONLY;
    }
    bool f = first && was_first, l = last && was_last;
    if (!l)
        return f ? base : (uint8_t)(base + 1);
    if (base == WF_OP_READ_RESP_FIRST)
        return f ? WF_OP_READ_RESP_ONLY : WF_OP_READ_RESP_LAST;
    bool imm = flags & WF_H_IMM, inv = flags & WF_H_IETH;
    if (base == WF_OP_SEND_FIRST && inv)
        return f ? WF_OP_SEND_ONLY_INV : WF_OP_SEND_LAST_INV;
    if (base == WF_OP_SEND_FIRST)
        return f ? (imm ? WF_OP_SEND_ONLY_IMM : WF_OP_SEND_ONLY)
                 : (imm ? WF_OP_SEND_LAST_IMM : WF_OP_SEND_LAST);
    return f ? (imm ? WF_OP_WRITE_ONLY_IMM : WF_OP_WRITE_ONLY)
             : (imm ? WF_OP_WRITE_LAST_IMM : WF_OP_WRITE_LAST);
}

static void add_piece(struct wf_capture *c, struct source *s, const struct wf_pkt *pkt,
                      uint32_t off, const char *note)
{
    uint8_t payload[4096], frame[WF_FRAME_MAX];
    read_payload(s->pkt, off, payload, pkt->len);
    s->frame.pkt = pkt;
    s->frame.payload = payload;
    size_t len = wf_frame_build(&s->frame, frame);
    if (len)
        add_block(c, frame, len, note);
}

static void add_packet(struct wf_capture *c, struct source *s, uint32_t mtu)
{
    const struct wf_pkt *pkt = s->pkt;
    bool whole = pkt->len <= mtu || !(wf_opcode_info(pkt->opcode)->flags & WF_F_PAYLOAD);
    if (whole) {
        add_piece(c, s, pkt, 0, s->note);
        return;
    }
    uint8_t service = pkt->opcode & 0xe0;
    for (uint32_t off = 0, i = 0; off < pkt->len; off += mtu, i++) {
        struct wf_pkt piece = *pkt;
        bool last = pkt->len - off <= mtu;
        piece.len = last ? pkt->len - off : mtu;
        piece.psn = (pkt->psn + i) & WF_PSN_MASK;
        piece.opcode = service | piece_operation(pkt->opcode & 0x1f, off == 0, last);
        if (!last)
            piece.flags &= (uint8_t) ~(WF_PKT_ACK_REQ | WF_PKT_SOLICITED);
        add_piece(c, s, &piece, off, off == 0 ? s->note : NULL);
    }
}

// ---- what the engine calls ----------------------------------------------------------------------

// A packet that came from a process whose capture goes to the same file is there already.
static bool seen_by_sender(struct wf_hca *h, const struct wf_capture *c, uint32_t slot,
                           const union ibv_gid *from)
{
    struct wf_peer *peer;
    bool local = !from;
    for (int i = 0; from && i < WF_GIDS; i++)
        local |= memcmp(&h->gids.gids[i].gid, from, sizeof(*from)) == 0;
    if (!local)
        return false;
    if (slot == h->slot)
        return true;
    return h->fabric && wf_fabric_peer(h->fabric, slot, &peer) == 0 &&
           atomic_load(&peer->region->view.capture_id) == c->id;
}

static uint64_t wr_id_of(const struct wf_qp *qp, bool rx, const struct wf_pkt *pkt, bool *known)
{
    *known = !rx && wf_opcode_info(pkt->opcode)->flags & WF_F_REQUEST && qp->sq.next != qp->sq.head;
    return *known ? wf_sq_slot(&qp->sq, qp->sq.next)->wr_id : 0;
}

static void make_note(struct wf_capture *c, const struct wf_qp *qp, bool rx,
                      const struct wf_pkt *pkt, const char *extra, char *note)
{
    bool known;
    uint64_t wr_id = wr_id_of(qp, rx, pkt, &known);
    int n = snprintf(note, NOTE_ROOM, "%s %s[%d] QP 0x%06x", rx ? "to" : "from",
                     program_invocation_short_name, (int)getpid(), qp->qpn);
    if (known && n > 0 && n < (int)NOTE_ROOM)
        n += snprintf(note + n, NOTE_ROOM - (size_t)n, " wr_id 0x%llx", (unsigned long long)wr_id);
    if (extra && *extra && n > 0 && n < (int)NOTE_ROOM)
        n += snprintf(note + n, NOTE_ROOM - (size_t)n, "; %s", extra);
    if (c->reason[0] && n > 0 && n < (int)NOTE_ROOM)
        snprintf(note + n, NOTE_ROOM - (size_t)n, "; after %s", c->reason);
    c->reason[0] = 0;
}

void wf_capture_packet(struct wf_tap *t, struct wf_qp *qp, bool rx, const struct wf_path *path,
                       const struct wf_pkt *pkt, const char *extra)
{
    struct wf_capture *c = t->capture;
    char note[NOTE_ROOM];
    struct source s = {.pkt = pkt, .note = note};
    // On the wire only datagrams name their sender's QP.
    uint32_t from = wf_qp_connected(qp) ? qp->attr.dest_qp_num : pkt->sqpn;
    if (rx && seen_by_sender(t->h, c, from >> 16, pkt->ifindex ? pkt->sgid : NULL))
        return;
    s.frame = (struct wf_frame){.sgid = pkt->sgid,
                                .dgid = pkt->dgid,
                                .sport = path ? path->sport : 0xc000,
                                .tclass = pkt->tclass,
                                .hop_limit = pkt->hop_limit,
                                .flow_label = pkt->flow_label,
                                .bad_icrc = pkt->flags & WF_PKT_DAMAGED};
    // Rings carry no addresses for connected QPs: they are the path's, turned round.
    if (rx && path && (!s.frame.sgid || !s.frame.dgid)) {
        s.frame.sgid = &path->dgid;
        s.frame.dgid = &path->sgid;
    }
    if (!s.frame.sgid || !s.frame.dgid)
        return;
    pthread_mutex_lock(&c->lock);
    make_note(c, qp, rx, pkt, extra, note);
    add_packet(c, &s, qp->mtu);
    message_done(c);
    pthread_mutex_unlock(&c->lock);
}

static void onesided_answer(struct wf_capture *c, struct wf_qp *qp, struct source *s, bool read,
                            const struct wf_swqe *w, const struct iovec *iov, int niov,
                            uint32_t off, uint32_t len)
{
    bool first = off == 0, last = off + len == w->len;
    uint8_t op = WF_OP_ACK;
    if (read)
        op = first ? (last ? WF_OP_READ_RESP_ONLY : WF_OP_READ_RESP_FIRST)
                   : (last ? WF_OP_READ_RESP_LAST : WF_OP_READ_RESP_MIDDLE);
    struct wf_pkt pkt = {.opcode = op,
                         .pkey = qp->pkey,
                         .dqpn = qp->qpn,
                         .sqpn = qp->attr.dest_qp_num,
                         .psn = (w->psn + (read ? off / qp->mtu : w->npsn - 1)) & WF_PSN_MASK,
                         .syndrome = 0x1f,
                         .len = read ? len : 0,
                         .iov = iov,
                         .niov = read ? niov : 0};
    if (!read && !last)
        return;
    const union ibv_gid *from = s->frame.dgid;
    s->frame.dgid = s->frame.sgid;
    s->frame.sgid = from;
    s->pkt = &pkt;
    s->note = "executed by the requester in the responder's memory";
    add_packet(c, s, qp->mtu);
}

void wf_capture_onesided(struct wf_tap *t, struct wf_qp *qp, const struct wf_swqe *w,
                         const struct iovec *iov, int niov, uint32_t off, uint32_t len)
{
    struct wf_capture *c = t->capture;
    bool read = w->opcode == IBV_WR_RDMA_READ, first = off == 0, last = off + len == w->len;
    char note[NOTE_ROOM];
    uint8_t op = WF_OP_READ_REQ;
    if (!read)
        op = first ? (last ? WF_OP_WRITE_ONLY : WF_OP_WRITE_FIRST)
                   : (last ? WF_OP_WRITE_LAST : WF_OP_WRITE_MIDDLE);
    struct wf_pkt pkt = {.opcode = op,
                         .flags = last || read ? WF_PKT_ACK_REQ : 0,
                         .pkey = qp->pkey,
                         .dqpn = qp->attr.dest_qp_num,
                         .sqpn = qp->qpn,
                         .psn = (w->psn + off / qp->mtu) & WF_PSN_MASK,
                         .va = w->raddr,
                         .rkey = w->rkey,
                         .dma_len = w->len,
                         .len = read ? 0 : len,
                         .iov = iov,
                         .niov = read ? 0 : niov};
    struct source s = {.pkt = &pkt, .note = note};
    s.frame = (struct wf_frame){.sgid = &qp->path->sgid,
                                .dgid = &qp->path->dgid,
                                .sport = qp->path->sport,
                                .tclass = qp->path->tclass,
                                .hop_limit = qp->path->hop_limit};
    pthread_mutex_lock(&c->lock);
    make_note(c, qp, false, &pkt, "one-sided", note);
    if (!read || first)
        add_packet(c, &s, qp->mtu);
    onesided_answer(c, qp, &s, read, w, iov, niov, off, len);
    message_done(c);
    pthread_mutex_unlock(&c->lock);
}

#define MAD_LOCAL_ID 24 // in every CM message: the sender's communication id, slot on top
#define QP1_QKEY     0x80010000u

void wf_capture_mad(struct wf_tap *t, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                    const uint8_t mad[256], const char *extra)
{
    struct wf_capture *c = t->capture;
    struct iovec iov = {(void *)(uintptr_t)mad, 256};
    char note[NOTE_ROOM];
    if (rx && seen_by_sender(t->h, c, mad[MAD_LOCAL_ID], sgid))
        return;
    struct wf_pkt pkt = {.opcode = WF_OPCODE(WF_SVC_UD, WF_OP_SEND_ONLY),
                         .flags = WF_PKT_MIG_REQ,
                         .pkey = 0xffff,
                         .dqpn = 1,
                         .sqpn = 1,
                         .qkey = QP1_QKEY,
                         .len = 256,
                         .iov = &iov,
                         .niov = 1};
    struct source s = {.pkt = &pkt, .note = note};
    s.frame = (struct wf_frame){.sgid = sgid, .dgid = dgid, .sport = 0xc000};
    snprintf(note, sizeof(note), "%s %s[%d]%s%s", rx ? "to" : "from", program_invocation_short_name,
             (int)getpid(), extra && *extra ? "; " : "", extra ? extra : "");
    pthread_mutex_lock(&c->lock);
    add_packet(c, &s, 4096);
    message_done(c);
    pthread_mutex_unlock(&c->lock);
}

// ---- on and off ---------------------------------------------------------------------------------

// Under the lock of records, perhaps in the middle of a frame of the same thread: then the next
// frame sees that something failed.
static void on_reason(void *arg, enum wf_reason why, const char *text)
{
    struct wf_capture *c = arg;
    if (why != WF_R_FAULTS)
        atomic_store(&c->failed, true);
    if (pthread_mutex_trylock(&c->lock))
        return;
    snprintf(c->reason, sizeof(c->reason), "[%u %s] %s", why, wf_reason_name(why), text);
    // Nothing may follow a failure: what the recorder has goes out now.
    if (c->ring && c->failed && (uint32_t)why >= 200)
        write_out(c);
    pthread_mutex_unlock(&c->lock);
}

void wf_capture_free(struct wf_tap *t)
{
    struct wf_capture *c = t->capture;
    if (!c)
        return;
    wf_reason_watch(NULL, NULL);
    atomic_store(&t->h->region->view.capture_id, 0);
    t->capture = NULL;
    if (!c->ring)
        write_out(c);
    close(c->fd);
    pthread_mutex_destroy(&c->lock);
    free(c->out);
    free(c);
}

static void write_header(int fd)
{
    uint8_t head[256];
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_size == 0)
        (void)!write(fd, head, wf_pcapng_header(head, sizeof(head)));
}

int wf_capture_set(struct wf_tap *t, const char *path, size_t ring, uint32_t snaplen)
{
    struct stat st;
    wf_capture_free(t);
    if (!path)
        return 0;
    struct wf_capture *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    c->ring = ring;
    c->room = ring > OUT_ROOM ? ring : OUT_ROOM;
    c->snaplen = snaplen;
    c->out = malloc(c->room);
    if (c->fd < 0 || !c->out || fstat(c->fd, &st)) {
        int err = wf_refuse(EIO, WF_R_CAPTURE, "%s: %s", path, strerror(errno));
        if (c->fd >= 0)
            close(c->fd);
        free(c->out);
        free(c);
        return err;
    }
    pthread_mutex_init(&c->lock, NULL);
    write_header(c->fd);
    c->id = (uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino;
    t->capture = c;
    atomic_store(&t->h->region->view.capture_id, c->id);
    wf_reason_watch(on_reason, c);
    return 0;
}
