// SPDX-License-Identifier: BSD-2-Clause
// The kernel's rdma_cm in user space: addresses, port spaces and the events of the character
// device, over cm/. Everything here is protected by the lock of the connection manager's host.
#ifndef WF_RDMACM_INTERNAL_H
#define WF_RDMACM_INTERNAL_H

#include "base/reason.h"
#include "cm/host.h"
#include "rdmacm/iphdr.h"
#include "rdmacm/server.h"
#include <infiniband/ib.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <sys/queue.h>

#define RCM_UDP_QKEY  0x01234567u
#define RCM_MCAST_QPN 0xffffffu

enum rcm_event {
    RCM_ADDR_RESOLVED,
    RCM_ADDR_ERROR,
    RCM_ROUTE_RESOLVED,
    RCM_ROUTE_ERROR,
    RCM_CONNECT_REQUEST,
    RCM_CONNECT_RESPONSE,
    RCM_CONNECT_ERROR,
    RCM_UNREACHABLE,
    RCM_REJECTED,
    RCM_ESTABLISHED,
    RCM_DISCONNECTED,
    RCM_DEVICE_REMOVAL,
    RCM_MULTICAST_JOIN,
    RCM_MULTICAST_ERROR,
    RCM_ADDR_CHANGE,
    RCM_TIMEWAIT_EXIT,
};

enum rcm_state {
    RCM_IDLE,
    RCM_ADDR_BOUND,
    RCM_ADDR_OK,
    RCM_ROUTE_OK,
    RCM_CONNECT,
    RCM_DISCONNECT,
    RCM_LISTENING,
};

struct rcm_id;
struct rcm_channel;

// A group that an id has joined.
struct rcm_mc {
    LIST_ENTRY(rcm_mc) next; // of the id
    struct rcm_id *id;
    uint64_t uid;
    uint32_t handle;
    uint32_t reported;
    union ibv_gid mgid;
};

// A service id that listeners of one or several addresses share (wire-level there is but one).
struct rcm_service {
    struct wf_cm_owner owner;
    LIST_ENTRY(rcm_service) next;
    LIST_HEAD(, rcm_id) listeners;
    struct wf_cm_id *cm_id;
    uint64_t service_id;
    uint64_t expires; // 0: somebody listens; else when it ends unless somebody does
    STAILQ_HEAD(, rcm_held) held;
};

// A request that came while nobody listened, but somebody had just now.
struct rcm_held {
    STAILQ_ENTRY(rcm_held) next;
    struct wf_cm_event ev;
};

struct rcm_id {
    struct wf_cm_owner owner;
    struct rcm_channel *channel;
    LIST_ENTRY(rcm_id) of_channel;
    uint32_t handle;
    uint64_t uid;
    enum rcm_state state;
    uint16_t ps;
    enum ibv_qp_type qp_type;
    struct wf_cm_id *cm_id;
    struct sockaddr_storage src, dst;

    bool has_device; // a source GID is known
    uint32_t sgid_index;
    struct wf_cm_route path;
    bool has_path;
    uint32_t psn; // our starting PSN
    uint32_t qpn, qkey;
    bool srq;

    uint8_t tos;
    bool reuseaddr, afonly;
    bool loopback;       // bound to a loopback address, for which src has the device's own
    uint8_t ack_timeout; // 0: not set
    bool tos_set, ack_timeout_set;

    LIST_ENTRY(rcm_id) of_port; // ports.c
    bool bound;
    LIST_ENTRY(rcm_id) of_service;
    struct rcm_service *service;
    int backlog; // requests that may still be announced

    uint32_t reported; // events that the program took
    LIST_HEAD(, rcm_mc) groups;
};

struct rcm_queued {
    STAILQ_ENTRY(rcm_queued) next;
    struct rcm_id *id;      // whose event
    struct rcm_id *request; // CONNECT_REQUEST: the new id, the program's once it took the event
    struct rcm_mc *mc;
    struct rdma_ucm_event_resp resp;
};

struct rcm_channel {
    LIST_ENTRY(rcm_channel) next;
    int fd; // eventfd: readable while events wait
    struct wf_cm_host *host;
    LIST_HEAD(, rcm_id) ids;
    STAILQ_HEAD(, rcm_queued) events;
};

// ---- channel.c ----------------------------------------------------------------------------------
struct rcm_channel *rcm_channel_of(int fd); // NULL: none of ours, or the parent's after fork()
int rcm_emit(struct rcm_id *id, enum rcm_event event, int status);
// Fill queued->resp.param, then queue it. NULL: the program is not to hear of it, or no memory.
struct rcm_queued *rcm_prepare(struct rcm_id *id, enum rcm_event event, int status);
void rcm_queue(struct rcm_queued *q);
void rcm_drop_events(struct rcm_id *id, const struct rcm_mc *mc);
void rcm_move_events(struct rcm_id *id, struct rcm_channel *from, struct rcm_channel *to);
int rcm_get_event(struct rcm_channel *c, const struct rdma_ucm_get_event *cmd, size_t out_len);

// ---- ids (cmd_id.c) -----------------------------------------------------------------------------
int rcm_id_create(struct rcm_channel *c, uint64_t uid, uint16_t ps, enum ibv_qp_type type,
                  struct rcm_id **out);
void rcm_id_destroy(struct rcm_id *id); // tells the peer, gives the port back, drops events
struct rcm_id *rcm_id_find(uint32_t handle);

// ---- handles (handles.c): small numbers, the lowest free one first ------------------------------
struct rcm_handles {
    void **slot;
    uint32_t len, low;
};
int rcm_handle_new(struct rcm_handles *h, void *object, uint32_t *out);
void *rcm_handle_find(const struct rcm_handles *h, uint32_t n);
void rcm_handle_free(struct rcm_handles *h, uint32_t n);

// ---- addresses (addr.c) -------------------------------------------------------------------------
size_t rcm_addr_len(const void *sa); // 0: unknown family
bool rcm_addr_any(const void *sa);
bool rcm_addr_loopback(const void *sa);
bool rcm_addr_same(const void *a, const void *b); // addresses, not ports
uint16_t rcm_addr_port(const void *sa);           // host order
void rcm_addr_set_port(void *sa, uint16_t port);
void rcm_addr_to_gid(const void *sa, union ibv_gid *gid);
// Index of the GID that stands for a local address; loopback stands for the device's own. -ENODEV.
int rcm_addr_gid_index(struct wf_cm_host *h, const void *sa, struct wf_gid_slot *out);
// Ask the routing tables for the source address to `dst`; errors as connect(2).
int rcm_addr_route(const void *dst, const void *src, uint8_t tos, struct sockaddr_storage *out);
uint8_t rcm_mtu_of(uint32_t ifmtu);

// ---- ports (ports.c) ----------------------------------------------------------------------------
int rcm_port_bind(struct rcm_id *id); // takes or picks the port in id->src
void rcm_port_release(struct rcm_id *id);
int rcm_port_listen(struct rcm_id *id); // may it listen there?

// ---- commands -----------------------------------------------------------------------------------
struct rcm_call {
    struct rcm_channel *channel;
    const void *in; // at least the command's structure, zero-filled
    size_t out_len;
};
typedef int (*rcm_command)(const struct rcm_call *c);
int rcm_reply(const struct rcm_call *c, uint64_t response, const void *resp, size_t len);
int rcm_call_id(const struct rcm_call *c, uint32_t handle, struct rcm_id **out);

int rcm_cmd_create_id(const struct rcm_call *c); // cmd_id.c
int rcm_cmd_destroy_id(const struct rcm_call *c);
int rcm_cmd_migrate_id(const struct rcm_call *c);
int rcm_cmd_bind_ip(const struct rcm_call *c); // cmd_addr.c
int rcm_cmd_bind(const struct rcm_call *c);
int rcm_cmd_resolve_ip(const struct rcm_call *c);
int rcm_cmd_resolve_addr(const struct rcm_call *c);
int rcm_cmd_resolve_route(const struct rcm_call *c);
int rcm_cmd_query_route(const struct rcm_call *c); // cmd_query.c
int rcm_cmd_query(const struct rcm_call *c);
int rcm_cmd_init_qp_attr(const struct rcm_call *c);
int rcm_cmd_connect(const struct rcm_call *c); // cmd_conn.c
int rcm_cmd_accept(const struct rcm_call *c);
int rcm_cmd_reject(const struct rcm_call *c);
int rcm_cmd_disconnect(const struct rcm_call *c);
int rcm_cmd_notify(const struct rcm_call *c);
int rcm_cmd_listen(const struct rcm_call *c);        // listen.c
int rcm_cmd_set_option(const struct rcm_call *c);    // option.c
int rcm_cmd_join_ip_mcast(const struct rcm_call *c); // mcast.c
int rcm_cmd_join_mcast(const struct rcm_call *c);
int rcm_cmd_leave_mcast(const struct rcm_call *c);

// ---- between them -------------------------------------------------------------------------------
bool rcm_hold(struct rcm_service *s, const struct wf_cm_event *e);         // listen.c
void rcm_unlisten(struct rcm_id *id);                                      // listen.c
void rcm_on_event(struct wf_cm_owner *owner, const struct wf_cm_event *e); // handler.c
void rcm_on_request(struct wf_cm_owner *owner, const struct wf_cm_event *e);
uint64_t rcm_id_service(const struct rcm_id *id);
unsigned rcm_data_offset(const struct rcm_id *id); // of the program's private data
void rcm_ah_to_user(const struct ibv_ah_attr *from, struct ib_uverbs_ah_attr *to);
void rcm_route_ah(const struct rcm_id *id, const union ibv_gid *dgid, struct ib_uverbs_ah_attr *to);
void rcm_default_qkey(struct rcm_id *id);
int rcm_use_source(struct rcm_id *id); // find the GID of id->src
void rcm_leave_all(struct rcm_id *id); // mcast.c

// A child of fork() begins anew.
void rcm_ids_reset(void);
void rcm_groups_reset(void);
void rcm_services_reset(void);
void rcm_ports_reset(void);

#endif
