// SPDX-License-Identifier: BSD-2-Clause
// The verbs face: objects of the verbs API over those of the engine. A face object begins with the
// structure that programs compile in and adds the engine's object and what acknowledging needs.
//
// Locks, in the order in which they may be taken: a builder's or poller's lock of one QP or CQ, the
// engine's lock (inside wf_* calls), a queue lock (channel, async), an object's public mutex. A
// queue lock is never held across a call into the engine.
#ifndef WF_VERBS_FACE_H
#define WF_VERBS_FACE_H

// What verbs.h declares is what this library exports; everything else stays hidden.
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include "base/reason.h"
#include "engine/hca.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#define WF_EXPORT                       __attribute__((visibility("default")))
#define wf_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define WF_FACE_DEVICE   "weft0"
#define WF_FACE_PORTS    1
#define WF_FACE_DM_BYTES (1u << 20) // device memory of one process
#define WF_FACE_WC_FLAGS IBV_CREATE_CQ_SUP_WC_FLAGS

// IBV_QP_EX_WITH_FLUSH of newer headers.
#define WF_QP_EX_WITH_FLUSH (1u << 11)

struct wf_vevent;
struct wf_vcontext;
struct wf_vpd;
struct wf_vmr;
struct wf_vdm;
struct wf_vcq;
struct wf_vqp;

// ---- results ------------------------------------------------------------------------------------

// A verb's result from 0 or -errno: 0 or the positive errno, which errno holds too.
static inline int wf_verb(int rc)
{
    if (rc >= 0)
        return 0;
    errno = -rc;
    return -rc;
}

// The result of a verb that makes an object, when it could not.
static inline void *wf_verb_null(int rc)
{
    errno = -rc;
    return NULL;
}

// ---- contexts -----------------------------------------------------------------------------------

// What a command descriptor stands for: one engine context. Contexts imported from the descriptor
// share it, as contexts share a file of the kernel's device.
struct wf_vfile {
    struct wf_hca *hca;
    struct wf_ctx *ctx;
    unsigned epoch; // of the process that opened it, see wf_face_epoch()
    dev_t dev;
    ino_t ino;
    int refs; // contexts; under the list's lock

    pthread_mutex_t lock; // everything below
    struct wf_vcontext *contexts;
    struct wf_vpd *pds;
    struct wf_vmr *mrs;
    struct wf_vdm *dms;
    struct wf_vqp *qps;
    uint32_t last_handle;
    struct wf_vfile *prev, *next;
};

struct wf_vasync {
    pthread_mutex_t lock;
    struct wf_vevent *head;
};

// Newer verbs headers know more operations; they stand in front of those of ours.
#define WF_NEWER_OPS 6

struct wf_vcontext {
    void *newer[WF_NEWER_OPS];
    struct verbs_context verbs;
    struct wf_vfile *file;
    struct wf_vasync async;
    struct wf_vcontext *prev, *next;
};

static inline struct wf_vcontext *wf_vcontext(struct ibv_context *ctx)
{
    return wf_container(ctx, struct wf_vcontext, verbs.context);
}

static inline struct wf_hca *wf_vhca(struct ibv_context *ctx)
{
    return wf_vcontext(ctx)->file->hca;
}

// Grows by one in a child of fork(): an object of an older epoch is the parent's, and a child that
// destroys it must only free its copy.
unsigned wf_face_epoch(void);
static inline bool wf_vforeign(struct ibv_context *ctx)
{
    return wf_vcontext(ctx)->file->epoch != wf_face_epoch();
}

struct wf_vcontext *wf_vcontext_new(struct ibv_device *device, struct wf_vfile *file, int cmd_fd);
struct wf_vfile *wf_vfile_open(int *rc, int *cmd_fd);
struct wf_vfile *wf_vfile_find(int cmd_fd); // takes a reference
void wf_vfile_put(struct wf_vfile *file);
void wf_context_ops(struct verbs_context *verbs);
struct ibv_device *wf_face_device(void);
void wf_face_device_guid(uint64_t guid);

// ---- events -------------------------------------------------------------------------------------

// Where the acknowledgements of one object's events are counted.
struct wf_vacks {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    uint32_t *completed;         // in the public structure, under mutex
    _Atomic uint32_t *delivered; // events handed out
    const char *what;
    uint32_t id;
};
void wf_vacks_done(const struct wf_vacks *acks, uint32_t n);
void wf_vacks_wait(const struct wf_vacks *acks); // until all that was handed out is acknowledged

int wf_event_fd(void);
void wf_event_signal(int fd);
void wf_event_drain(int fd);
int wf_event_wait(int fd, struct wf_hca *hca);

void wf_vasync_init(struct wf_vasync *q);
void wf_vasync_fini(struct wf_vasync *q);
void wf_vasync_drop(struct ibv_context *ctx, const void *object);
void wf_vasync_raise(void *file, enum ibv_event_type type, void *object, uint8_t port);

// ---- protection domains -------------------------------------------------------------------------

// Given back by ibv_unimport_pd() while objects made in it live: goes with the last of them.
#define WF_VPD_ORPHAN (1u << 31)

enum wf_vpd_kind { WF_VPD_OWN, WF_VPD_PARENT, WF_VPD_IMPORTED };

struct wf_vpd {
    struct ibv_pd ibv;
    struct wf_pd *pd;
    enum wf_vpd_kind kind;
    struct wf_vpd *base;    // the domain that a parent or imported one stands for
    struct ibv_td *td;      // of a parent domain
    _Atomic uint32_t users; // objects made in it, and WF_VPD_ORPHAN
    void *(*alloc)(struct ibv_pd *pd, void *arg, size_t size, size_t align, uint64_t type);
    void (*free)(struct ibv_pd *pd, void *arg, void *ptr, uint64_t type);
    void *arg;
    struct wf_vpd *prev, *next;
};

struct wf_vtd {
    struct ibv_td ibv;
    _Atomic uint32_t users;
};

static inline struct wf_vpd *wf_vpd(struct ibv_pd *pd)
{
    return (struct wf_vpd *)pd;
}
static inline void wf_vpd_use(struct ibv_pd *pd)
{
    if (pd)
        atomic_fetch_add_explicit(&wf_vpd(pd)->users, 1, memory_order_relaxed);
}
void wf_vpd_unuse(struct ibv_pd *pd);

// Memory of a face object, from the allocators of its parent domain when there are any. `type`
// tells them what it is for.
enum wf_vmem_type { WF_VMEM_QP, WF_VMEM_CQ, WF_VMEM_SRQ };
struct wf_vmem {
    struct wf_vpd *domain; // whose free() takes it back, NULL: the C library's
    enum wf_vmem_type type;
};
void *wf_vmem_alloc(struct ibv_pd *pd, size_t size, enum wf_vmem_type type, struct wf_vmem *mem);
void wf_vmem_free(void *ptr, struct wf_vmem mem);

// ---- memory -------------------------------------------------------------------------------------

struct wf_vmr {
    struct ibv_mr ibv;
    struct wf_mr *mr; // NULL: an imported region
    struct wf_vdm *dm;
    void *map; // of a dma-buf
    size_t map_len;
    struct wf_vmr *prev, *next;
};

struct wf_vmw {
    struct ibv_mw ibv;
    struct wf_mw *mw;
};

struct wf_vdm {
    struct ibv_dm ibv;
    struct wf_vdm *base; // of an imported one
    uint8_t *mem;
    size_t len;
    _Atomic uint32_t users; // regions and imports
    struct wf_vdm *prev, *next;
};

struct ibv_mr *wf_vmr_new(struct ibv_pd *pd, void *addr, uint64_t len, uint64_t iova,
                          unsigned access);
uint32_t wf_vfile_handle(struct wf_vfile *file);

// ---- queues -------------------------------------------------------------------------------------

struct wf_vchannel {
    struct ibv_comp_channel ibv;
    pthread_mutex_t lock;
    struct wf_vcq *head; // CQs with events that nobody got yet
};

struct wf_vcq {
    struct ibv_cq_ex ibv;
    struct wf_cq *cq;
    struct wf_wc now; // the completion that the extended poll stands at
    pthread_mutex_t poll_lock;
    bool single_threaded;
    uint32_t undelivered;       // events; under the channel's lock
    _Atomic uint32_t delivered; // completion events handed out
    _Atomic uint32_t async_delivered;
    struct ibv_pd *domain;
    struct wf_vmem mem;
    struct wf_vcq *prev, *next; // in the channel
};

static inline struct wf_vcq *wf_vcq(struct ibv_cq *cq)
{
    return (struct wf_vcq *)cq;
}

int wf_vcq_new(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
               struct wf_vcq **out);
void wf_vcq_fill_ex(struct wf_vcq *cq, uint64_t wc_flags);
void wf_vchannel_raise(void *cq);
void wf_vchannel_drop(struct wf_vcq *cq);

struct wf_vxrcd {
    struct ibv_xrcd ibv;
    struct wf_xrcd *xrcd;
};

struct wf_vsrq {
    struct ibv_srq ibv;
    struct wf_srq *srq;
    _Atomic uint32_t delivered;
    struct wf_vmem mem;
};

static inline struct wf_vsrq *wf_vsrq(struct ibv_srq *srq)
{
    return (struct wf_vsrq *)srq;
}

// A request that a builder has begun; where its list lies in the arenas.
struct wf_vwr {
    struct ibv_send_wr wr;
    uint32_t sge, num_sge; // in sges
    uint32_t data, len;    // in bytes
    bool inlined;
};

struct wf_vbuild {
    pthread_mutex_t lock;
    uint64_t ops; // IBV_QP_EX_WITH_* asked for at creation
    int err;      // the first thing that went wrong since wr_start
    struct wf_vwr *wrs;
    struct ibv_sge *sges;
    uint8_t *bytes;
    uint32_t n, room;
    uint32_t n_sges, sge_room;
    uint32_t n_bytes, byte_room;
};

struct wf_vqp {
    struct ibv_qp_ex ibv;
    // Slot of newer headers, right behind the structure of ours.
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
                     uint8_t level);
    struct wf_qp *qp;
    struct wf_vqp *shared; // opened by number: the one that stands for the QP itself
    _Atomic uint32_t openers;
    struct ibv_qp_cap cap;
    int sig_all;
    struct ibv_xrcd *xrcd;
    _Atomic uint32_t delivered;
    struct ibv_ece ece;
    struct wf_vbuild *build;
    struct wf_vmem mem;
    struct wf_vqp *prev, *next;
};

static inline struct wf_vqp *wf_vqp(struct ibv_qp *qp)
{
    return (struct wf_vqp *)qp;
}

int wf_vqp_new(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct wf_vqp **out);
int wf_vbuild_new(struct wf_vqp *qp, uint64_t ops);
void wf_vbuild_free(struct wf_vqp *qp);

// ---- operations that programs reach through the tables
// -------------------------------------------

int wf_op_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
int wf_op_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
                          struct ibv_device_attr_ex *attr, size_t size);
int wf_op_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);

struct ibv_mw *wf_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int wf_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int wf_op_dealloc_mw(struct ibv_mw *mw);
int wf_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg, uint32_t n);
struct ibv_mr *wf_op_alloc_null_mr(struct ibv_pd *pd);
struct ibv_dm *wf_op_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int wf_op_free_dm(struct ibv_dm *dm);
struct ibv_mr *wf_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t len,
                               unsigned access);

struct ibv_td *wf_op_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int wf_op_dealloc_td(struct ibv_td *td);
struct ibv_pd *wf_op_alloc_parent_domain(struct ibv_context *ctx,
                                         struct ibv_parent_domain_init_attr *attr);

int wf_op_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int wf_op_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *wf_op_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int wf_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

struct ibv_srq *wf_op_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int wf_op_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int wf_op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_xrcd *wf_op_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int wf_op_close_xrcd(struct ibv_xrcd *xrcd);

struct ibv_qp *wf_op_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *wf_op_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
int wf_op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int wf_op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_counters *wf_op_create_counters(struct ibv_context *ctx,
                                           struct ibv_counters_init_attr *attr);
int wf_op_destroy_counters(struct ibv_counters *counters);
int wf_op_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
                          struct ibv_flow *flow);
int wf_op_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n,
                        uint32_t flags);

#endif
