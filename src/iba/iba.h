// SPDX-License-Identifier: BSD-2-Clause
// Async verbs over the engine: what the files of this folder share.
//
// Every object that a client sees is the public structure of iba/ibverbs.h with a struct object in
// front of it. `users` counts what keeps an object from going: its children, requests under way,
// event IRPs that wait, a callback that runs. Destroying marks it `closing`; whoever takes `users`
// to 0 after that ends it (object.c).
//
// One spin lock, device.lock, guards all bookkeeping here. It is taken under the engine's lock
// (event callbacks), so nothing may call the engine while holding it.
#ifndef WF_IBA_IBA_H
#define WF_IBA_IBA_H

#include "base/reason.h"
#include "engine/hca.h"
#include "weft/iba.h"

#include <pthread.h>
#include <stdbool.h>

#define WF_IBA_PORTS 1

enum wf_iba_kind {
    WF_IBA_CA = 0x57494301, // also the mark that tells an object from other memory
    WF_IBA_CQ,
    WF_IBA_PD,
    WF_IBA_AH,
    WF_IBA_QP,
    WF_IBA_SRQ,
    WF_IBA_MR,
    WF_IBA_MW,
};

struct wf_iba_object;
struct wf_iba_ca;

struct wf_iba_class {
    enum wf_iba_kind kind;
    // Ends what the engine has of it: 0, or -EBUSY to be asked again later. May block.
    int (*destroy)(struct wf_iba_object *o);
    // Ends event IRPs that wait; NULL when the class has none.
    void (*flush)(struct wf_iba_object *o, NTSTATUS status);
};

#define WF_IBA_PARENTS 4

struct wf_iba_object {
    enum wf_iba_kind kind; // 0 once it is gone
    bool closing;          // destroy was called
    bool reaping;          // somebody is about to end it
    bool told_dead;        // its waiting IRPs were ended because the device died
    LONG users;
    LONG volatile *nref; // the public count of children, or NULL
    const struct wf_iba_class *class;
    struct wf_iba_ca *ca;
    struct wf_iba_object *parent[WF_IBA_PARENTS];
    LIST_ENTRY destroyers; // IRPs of destroy verbs
    LIST_ENTRY in_ca;      // among the CA's objects that have events
    LIST_ENTRY zombie;     // among the device's objects whose destroy was -EBUSY
    ULONG_PTR result;      // Information of the destroy IRP
    struct wf_work work;
};
_Static_assert(sizeof(struct wf_iba_object) % 8 == 0, "the public structure follows at once");

// ---- the device ---------------------------------------------------------------------------------

// What Context in a table points to: which table it is.
struct wf_iba_ifc {
    USHORT version;
    bool literal; // IB_AC_RDMA_READ is 0 for this client
};

struct wf_iba_device {
    struct wf_hca *hca; // NULL while nobody has a table
    bool injected;      // by a test, which owns it
    KSPIN_LOCK lock;
    LONG refs; // tables and open CAs
    LIST_ENTRY zombies;
    bool retrying;
    struct wf_hca_timer retry;
    pthread_rwlock_t ah_lock; // posts read the engine's handle in an AH, ModifyAh replaces it
    // Set through ModifyCa and ModifyPort.
    UINT64 system_image_guid;
    CHAR node_desc[64];
    UCHAR init_type_reply;
    uint32_t qkey_violations_base;
    struct wf_iba_ca *cap_owner[32];
};

extern struct wf_iba_device wf_iba_device;

// For tests: stand on this engine, which is the caller's, instead of the process's. NULL: no more.
void wf_iba_device_inject(struct wf_hca *hca);

NTSTATUS wf_iba_device_get(void);
void wf_iba_device_put(void);

KIRQL wf_iba_lock(void);
void wf_iba_unlock(KIRQL irql);

const struct wf_iba_ifc *wf_iba_ifc_of(const void *context); // NULL: not a table's Context
const struct wf_iba_ifc *wf_iba_ifc(USHORT version, bool literal);

// True when the caller may do work that blocks: below DISPATCH_LEVEL, and by policy.
bool wf_iba_may_run_here(void);
// Brackets whatever the engine's thread runs for us.
void wf_iba_enter_engine_thread(void);
void wf_iba_leave_engine_thread(void);
bool wf_iba_in_engine_thread(void);

IB_MTU wf_iba_path_mtu(IB_MTU active);

// ---- objects ------------------------------------------------------------------------------------

// `size` is of the whole structure.
struct wf_iba_object *wf_iba_object_new(const struct wf_iba_class *class, size_t size,
                                        struct wf_iba_ca *ca);
// Puts `o` under `parent`. Fails when the parent is being destroyed.
NTSTATUS wf_iba_adopt(struct wf_iba_object *o, int slot, struct wf_iba_object *parent);
// Undoes new and adopt for an object that no client has seen.
void wf_iba_object_discard(struct wf_iba_object *o);

// The object that a public pointer belongs to, or NULL when it is NULL or of another kind.
struct wf_iba_object *wf_iba_object_of(const void *pub, enum wf_iba_kind kind);

// A user for the length of a call. STATUS_DELETE_PENDING, STATUS_FILE_FORCED_CLOSED.
NTSTATUS wf_iba_hold(struct wf_iba_object *o);
void wf_iba_put(struct wf_iba_object *o);
// STATUS_FILE_FORCED_CLOSED once the CA is dead, STATUS_DELETE_PENDING while the object goes.
NTSTATUS wf_iba_alive(const struct wf_iba_object *o);
// Ask objects again whose destroy was -EBUSY. Cheap when there are none.
void wf_iba_retry_zombies(void);

// ---- requests (op.c) ----------------------------------------------------------------------------

// An asynchronous request. It lives on the verb's stack, and is copied to the heap when its work is
// left to the engine's thread.
struct wf_iba_op {
    struct wf_work work;
    NTSTATUS (*begin)(struct wf_iba_op *op, PIRP irp);
    NTSTATUS (*run)(struct wf_iba_op *op, ULONG_PTR *info);
    size_t size; // of the structure that this is the head of
    struct wf_iba_object *target;
    void *queue;
    NTSTATUS refusal;
    PIRP irp;
};

// Fills in and starts a request: run() with `target` held, its result goes to the IRP.
NTSTATUS wf_iba_start(struct wf_iba_op *op, size_t size,
                      NTSTATUS (*run)(struct wf_iba_op *op, ULONG_PTR *info),
                      struct wf_iba_object *target, CI_UDATA *ud, PIRP irp);
// Sends the IRP to our own device, whose dispatch routine calls op->begin(); only so may it be
// completed (the verbs' rule about IoCallDriver).
NTSTATUS wf_iba_submit(struct wf_iba_op *op, CI_UDATA *ud, PIRP irp);
// Explains why `verb` gives this status, and returns it.
NTSTATUS wf_iba_bad(NTSTATUS status, const char *verb);
// Likewise, and ends the IRP with it.
NTSTATUS wf_iba_refuse(PIRP irp, NTSTATUS status, const char *verb);
// Starts the end of an object.
NTSTATUS wf_iba_destroy(struct wf_iba_object *o, CI_UDATA *ud, PIRP irp);

NTSTATUS wf_iba_complete(PIRP irp, NTSTATUS status, ULONG_PTR info);
NTSTATUS wf_iba_status(int err); // of 0 or -errno

// ---- events (events.c) --------------------------------------------------------------------------

#define WF_IBA_EVENTS 32

// Events of one source and the IRPs that wait for them.
struct wf_iba_events {
    struct wf_iba_object *owner;
    bool latch;  // completion events: one is remembered, one IRP may wait
    bool sticky; // fatal events: once happened, IRPs succeed at once
    bool happened;
    bool scheduled;
    unsigned head, count;
    ULONG ring[WF_IBA_EVENTS];
    LIST_ENTRY irps;
    struct wf_work work;
    void (*call)(struct wf_iba_events *e, ULONG event); // the client's callback, or NULL
};

void wf_iba_events_init(struct wf_iba_events *e, struct wf_iba_object *owner,
                        void (*call)(struct wf_iba_events *e, ULONG event));
// May be called under the engine's lock.
void wf_iba_raise(struct wf_iba_events *e, ULONG event);
NTSTATUS wf_iba_wait_event(struct wf_iba_events *e, PIRP irp);
void wf_iba_flush_events(struct wf_iba_events *e, NTSTATUS status);

// ---- the objects --------------------------------------------------------------------------------

// The public structure, `pub`, must come right behind the object.
struct wf_iba_ca {
    struct wf_iba_object obj;
    IB_CA pub;
    const struct wf_iba_ifc *ifc;
    struct wf_ctx *ctx;
    bool dead;
    PFN_IB_CA_ASYNC_EVENT on_event;
    LIST_ENTRY sources; // objects that have events
    struct wf_work dead_work;
    struct wf_iba_events fatal, port[WF_IBA_PORTS];
};

struct wf_iba_cq {
    struct wf_iba_object obj;
    IB_CQ pub;
    struct wf_cq *cq;
    bool counting; // RearmNCq left a moderation behind
    PFN_IB_CQ_COMP_EVENT on_comp;
    PFN_IB_CQ_ASYNC_EVENT on_async;
    struct wf_iba_events comp, async;
};

struct wf_iba_pd {
    struct wf_iba_object obj;
    IB_PD pub;
    struct wf_pd *pd;
};

struct wf_iba_ah {
    struct wf_iba_object obj;
    IB_AH pub;
    struct wf_ah *ah;
    IB_AH_ATTR attr;
};

struct wf_iba_qp {
    struct wf_iba_object obj;
    IB_QP pub;
    struct wf_qp *qp;
    PFN_IB_QP_ASYNC_EVENT on_async;
    struct wf_iba_events async;
};

struct wf_iba_srq {
    struct wf_iba_object obj;
    IB_SRQ pub;
    struct wf_srq *srq;
    ULONG depth, sge;
    PFN_IB_SRQ_ASYNC_EVENT on_async;
    struct wf_iba_events async;
};

struct wf_iba_mr {
    struct wf_iba_object obj;
    IB_MR pub;
    struct wf_mr *mr;
};

struct wf_iba_mw {
    struct wf_iba_object obj;
    IB_MW pub;
    struct wf_mw *mw;
    struct wf_iba_mr *bound; // region of the last bind, for its nRef
};

struct wf_iba_ca *wf_iba_ca_of(const IB_CA *pub);
struct wf_iba_cq *wf_iba_cq_of(const IB_CQ *pub);
struct wf_iba_pd *wf_iba_pd_of(const IB_PD *pub);
struct wf_iba_ah *wf_iba_ah_of(const IB_AH *pub);
struct wf_iba_qp *wf_iba_qp_of(const IB_QP *pub);
struct wf_iba_srq *wf_iba_srq_of(const IB_SRQ *pub);
struct wf_iba_mr *wf_iba_mr_of(const IB_MR *pub);
struct wf_iba_mw *wf_iba_mw_of(const void *pub);

// Puts an object among those whose IRPs end when the device dies.
void wf_iba_add_source(struct wf_iba_object *o);

// The engine's asynchronous events of a CA; under the engine's lock.
void wf_iba_ca_async(void *user, enum ibv_event_type type, void *object, uint8_t port);

// ---- translation (convert.c) --------------------------------------------------------------------

// -1 for bits that are not of IB_ACCESS_MASK.
int wf_iba_access(const struct wf_iba_ca *ca, ULONG mask);
ULONG wf_iba_access_back(int access);
NTSTATUS wf_iba_ah_attr(const IB_AH_ATTR *in, struct ibv_ah_attr *out);
void wf_iba_ah_attr_back(const struct ibv_ah_attr *in, IB_AH_ATTR *out);
void wf_iba_wc(const struct wf_wc *in, IB_WC *out);
ULONG wf_iba_event(enum ibv_event_type type, USHORT version);

NTSTATUS wf_iba_read_qp(struct wf_iba_qp *qp, IB_QP_ATTR *out);

// Of a QP type that clients may create; false for others.
bool wf_iba_qp_type(IB_QP_TYPE in, enum ibv_qp_type *out);

// ---- verbs --------------------------------------------------------------------------------------

NTSTATUS wf_iba_open_ca(VOID *const, VOID *const, PFN_IB_CA_ASYNC_EVENT, CI_UDATA *const,
                        IRP *const);
NTSTATUS wf_iba_close_ca(IB_CA *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_get_ca_fatal_event(IB_CA *const, IRP *const);
NTSTATUS wf_iba_get_ca_port_event(IB_CA *const, const UCHAR, IRP *const);
NTSTATUS wf_iba_query_ca(VOID *const, const SIZE_T, IB_CA_ATTR *const, IRP *const);
NTSTATUS wf_iba_query_port(VOID *const, const UCHAR, const SIZE_T, IB_PORT_ATTR *const, IRP *const);
NTSTATUS wf_iba_modify_ca(IB_CA *const, const ULONG, const IB_MODIFY_CA *const, IRP *const);
NTSTATUS wf_iba_modify_port(IB_CA *const, const UCHAR, const ULONG, const IB_MODIFY_PORT *const,
                            IRP *const);
UINT64 wf_iba_fw_version(const struct ibv_device_attr *d);
void wf_iba_release_port_caps(struct wf_iba_ca *ca);

NTSTATUS wf_iba_create_cq(IB_CA *const, ULONG const, VOID *const, PFN_IB_CQ_COMP_EVENT,
                          PFN_IB_CQ_ASYNC_EVENT, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_destroy_cq(IB_CQ *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_resize_cq(IB_CQ *const, ULONG const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_rearm_cq(IB_CQ *const, const BOOLEAN);
NTSTATUS wf_iba_rearm_n_cq(IB_CQ *const, const ULONG);
NTSTATUS wf_iba_poll_cq(IB_CQ *const, LONG *const, IB_WC *wc[]);
NTSTATUS wf_iba_peek_cq(IB_CQ *const, LONG *const);
NTSTATUS wf_iba_get_cq_comp_event(IB_CQ *const, IRP *const);
NTSTATUS wf_iba_get_cq_async_event(IB_CQ *const, IRP *const);

NTSTATUS wf_iba_create_pd(IB_CA *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_destroy_pd(IB_PD *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_create_ah(IB_PD *const, IB_AH_ATTR *const, IB_AH **const);
NTSTATUS wf_iba_destroy_ah(IB_AH *const);
NTSTATUS wf_iba_modify_ah(IB_AH *const, IB_AH_ATTR *const);
NTSTATUS wf_iba_query_ah(IB_AH *const, IB_AH_ATTR *const);

NTSTATUS wf_iba_create_qp(IB_PD *const, IB_QP_CREATE *const, VOID *const, PFN_IB_QP_ASYNC_EVENT,
                          CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_create_special_qp(IB_PD *const, UCHAR, IB_QP_CREATE *const, VOID *const,
                                  PFN_IB_QP_ASYNC_EVENT, IRP *const);
NTSTATUS wf_iba_destroy_qp(IB_QP *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_modify_qp(IB_QP *const, IB_QP_MODIFY *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_query_qp(IB_QP *const, IB_QP_ATTR *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_post_send(IB_QP *const, const IB_SEND_WR *, IB_SEND_WR **const);
NTSTATUS wf_iba_post_recv(IB_QP *const, const IB_RECV_WR *, IB_RECV_WR **const);
NTSTATUS wf_iba_get_qp_async_event(IB_QP *const, IRP *const);

NTSTATUS wf_iba_reg_mdl(IB_PD *const, MDL *const, const ULONG, IRP *const);
NTSTATUS wf_iba_reg_sg(IB_PD *const, SCATTER_GATHER_LIST *, const ULONG, IRP *const);
NTSTATUS wf_iba_get_dma_mr(IB_PD *const, const ULONG, IRP *const);
NTSTATUS wf_iba_dereg_mr(IB_MR *const, IRP *const);
NTSTATUS wf_iba_create_mw(IB_PD *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_destroy_mw(VOID *const, IRP *const);
NTSTATUS wf_iba_bind_mw(IB_QP *const, IB_MW *const, const IB_BIND_WR *const);

NTSTATUS wf_iba_create_srq(IB_PD *const, const IB_SRQ_CREATE *const, VOID *const,
                           PFN_IB_SRQ_ASYNC_EVENT, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_destroy_srq(IB_SRQ *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_modify_srq(IB_SRQ *const, const ULONG, const IB_SRQ_ATTR *const, CI_UDATA *const,
                           IRP *const);
NTSTATUS wf_iba_query_srq(IB_SRQ *const, IB_SRQ_ATTR *const, CI_UDATA *const, IRP *const);
NTSTATUS wf_iba_post_srq_recv(IB_SRQ *const, const IB_RECV_WR *, IB_RECV_WR **const);
NTSTATUS wf_iba_get_srq_async_event(IB_SRQ *const, IRP *const);
NTSTATUS wf_iba_attach_mcast(IB_QP *const, const IB_GID *const, IRP *const);
NTSTATUS wf_iba_detach_mcast(IB_QP *const, const IB_GID *const, IRP *const);

#endif
