// SPDX-License-Identifier: BSD-2-Clause
// Open devices: files (see face.h), contexts, import by command descriptor.
#include "verbs/face.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

// Layout that programs compile in: operations at negative offsets from the context.
_Static_assert(sizeof(struct ibv_context) == 328, "struct ibv_context");
_Static_assert(sizeof(struct verbs_context) == 648, "struct verbs_context");
_Static_assert(offsetof(struct wf_vcontext, verbs) == WF_NEWER_OPS * sizeof(void *),
               "newer operations lie right in front");

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_vfile *files;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic unsigned epoch;

static void fork_prepare(void)
{
    pthread_mutex_lock(&files_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&files_lock);
}

static void fork_child(void)
{
    pthread_mutex_unlock(&files_lock);
    atomic_fetch_add(&epoch, 1);
}

static void fork_watch(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

unsigned wf_face_epoch(void)
{
    pthread_once(&fork_once, fork_watch);
    return atomic_load(&epoch);
}

static const struct wf_ctx_ops ctx_ops = {.async = wf_vasync_raise};

static int file_join(struct wf_vfile *file, int fd)
{
    struct stat st;
    int rc;

    if (fstat(fd, &st) < 0)
        return -errno;
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    rc = wf_hca_get(&file->hca);
    if (rc < 0)
        return rc;
    wf_face_device_guid(wf_hca_node_guid(file->hca));
    rc = wf_ctx_open(file->hca, &ctx_ops, file, &file->ctx);
    if (rc < 0)
        wf_hca_put(file->hca);
    return rc;
}

// The command descriptor is a memory file: a real descriptor that can be duplicated and compared.
struct wf_vfile *wf_vfile_open(int *rc, int *cmd_fd)
{
    struct wf_vfile *file = calloc(1, sizeof(*file));
    int fd = memfd_create("weft-verbs", MFD_CLOEXEC);

    *rc = file ? (fd < 0 ? -errno : 0) : -ENOMEM;
    if (*rc == 0)
        *rc = file_join(file, fd);
    if (*rc < 0) {
        if (fd >= 0)
            close(fd);
        free(file);
        return NULL;
    }
    file->refs = 1;
    file->epoch = wf_face_epoch();
    pthread_mutex_init(&file->lock, NULL);
    pthread_mutex_lock(&files_lock);
    DL_APPEND(files, file);
    pthread_mutex_unlock(&files_lock);
    *cmd_fd = fd;
    return file;
}

struct wf_vfile *wf_vfile_find(int cmd_fd)
{
    unsigned now = wf_face_epoch();
    struct wf_vfile *file;
    struct stat st;

    if (fstat(cmd_fd, &st) < 0)
        return NULL;
    pthread_mutex_lock(&files_lock);
    DL_FOREACH(files, file)
    {
        if (file->dev == st.st_dev && file->ino == st.st_ino && file->epoch == now) {
            file->refs++;
            break;
        }
    }
    pthread_mutex_unlock(&files_lock);
    return file;
}

void wf_vfile_put(struct wf_vfile *file)
{
    bool last;

    pthread_mutex_lock(&files_lock);
    last = --file->refs == 0;
    if (last)
        DL_DELETE(files, file);
    pthread_mutex_unlock(&files_lock);
    if (!last)
        return;
    if (file->epoch == wf_face_epoch()) {
        wf_ctx_close(file->ctx);
        wf_hca_put(file->hca);
    }
    pthread_mutex_destroy(&file->lock);
    free(file);
}

uint32_t wf_vfile_handle(struct wf_vfile *file)
{
    return ++file->last_handle;
}

static int cpu_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

struct wf_vcontext *wf_vcontext_new(struct ibv_device *device, struct wf_vfile *file, int cmd_fd)
{
    struct wf_vcontext *v = calloc(1, sizeof(*v));
    struct ibv_context *ctx;

    if (!v)
        return NULL;
    ctx = &v->verbs.context;
    ctx->async_fd = wf_event_fd();
    if (ctx->async_fd < 0) {
        free(v);
        return NULL;
    }
    ctx->device = device;
    ctx->cmd_fd = cmd_fd;
    ctx->num_comp_vectors = cpu_count();
    ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&ctx->mutex, NULL);
    wf_vasync_init(&v->async);
    wf_context_ops(&v->verbs);
    v->verbs.sz = sizeof(v->newer) + sizeof(v->verbs);
    v->file = file;
    pthread_mutex_lock(&file->lock);
    DL_APPEND(file->contexts, v);
    pthread_mutex_unlock(&file->lock);
    return v;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct wf_vcontext *v;
    struct wf_vfile *file;
    int rc, fd;

    if (device != wf_face_device())
        return wf_verb_null(wf_refuse(ENODEV, WF_R_ARG, "ibv_open_device: no such device"));
    file = wf_vfile_open(&rc, &fd);
    if (!file)
        return wf_verb_null(rc);
    v = wf_vcontext_new(device, file, fd);
    if (!v) {
        close(fd);
        wf_vfile_put(file);
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_open_device"));
    }
    return &v->verbs.context;
}

// Only descriptors of this process's own contexts: domains are not shared between processes.
struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct wf_vfile *file = wf_vfile_find(cmd_fd);
    struct wf_vcontext *v;

    if (!file)
        return wf_verb_null(wf_refuse(EPROTONOSUPPORT, WF_R_NOT_SUPPORTED,
                                      "ibv_import_device: descriptor %d is not of a context of "
                                      "this process",
                                      cmd_fd));
    v = wf_vcontext_new(wf_face_device(), file, cmd_fd);
    if (!v) {
        wf_vfile_put(file);
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_import_device"));
    }
    return &v->verbs.context;
}

int ibv_close_device(struct ibv_context *ctx)
{
    struct wf_vcontext *v = wf_vcontext(ctx);
    struct wf_vfile *file = v->file;

    pthread_mutex_lock(&file->lock);
    DL_DELETE(file->contexts, v);
    pthread_mutex_unlock(&file->lock);
    // After this no event can come for a context that is gone.
    wf_vfile_put(file);
    close(ctx->async_fd);
    close(ctx->cmd_fd);
    wf_vasync_fini(&v->async);
    pthread_mutex_destroy(&ctx->mutex);
    free(v);
    return 0;
}
