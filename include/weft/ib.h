/* SPDX-License-Identifier: BSD-2-Clause */
/* From objects of <infiniband/verbs.h> to those of the kernel's interfaces in <rdma/...>, so that a
 * program connects its verbs QPs through <rdma/ib_cm.h>. Link with -lweft and -libverbs. */
#ifndef WEFT_IB_H
#define WEFT_IB_H

#include <infiniband/verbs.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device that the context was opened on; valid for the life of the process. NULL with errno
 * when the device cannot be reached. May block for two seconds, on first use. */
struct ib_device *weft_ib_device(struct ibv_context *context);

/* ibv_modify_qp() with the attributes of ib_cm_init_qp_attr(). 0 or -errno. */
int weft_ib_modify_qp(struct ibv_qp *qp, struct ib_qp_attr *attr, int mask);

/* The path that IP routing takes from `src` (NULL: whichever address the host prefers) to `dst`:
 * what a subnet administrator would answer. Asks no other host. 0 or -errno: -ENETUNREACH and the
 * like from the routing tables, -ENODEV when no GID stands for the source address. */
int weft_ib_path(struct ibv_context *context, const struct sockaddr *src,
                 const struct sockaddr *dst, struct ib_sa_path_rec *path);

#ifdef __cplusplus
}
#endif

#endif
