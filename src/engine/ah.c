// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>

int wf_ah_create(struct wf_pd *pd, const struct ibv_ah_attr *attr, struct wf_ah **out)
{
    struct wf_hca *h = pd->ctx->hca;
    int err = wf_verb_fault(h, "create_ah");
    if (err)
        return err;
    struct wf_ah *ah = calloc(1, sizeof(*ah));
    if (!ah)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "address handle");
    struct wf_path_ref *path;
    wf_enter(h);
    err = wf_path_make(h, attr, 0, false, &path);
    if (!err)
        pd->users++;
    wf_exit(h);
    if (err) {
        free(ah);
        return err;
    }
    ah->attr = *attr;
    ah->pd = pd;
    ah->path = &path->path;
    *out = ah;
    return 0;
}

int wf_ah_destroy(struct wf_ah *ah)
{
    struct wf_hca *h = ah->pd->ctx->hca;
    wf_enter(h);
    // Datagrams that still wait to be sent keep the path.
    wf_path_put((struct wf_path_ref *)ah->path);
    ah->pd->users--;
    wf_exit(h);
    free(ah);
    return 0;
}
