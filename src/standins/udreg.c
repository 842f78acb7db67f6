// SPDX-License-Identifier: BSD-2-Clause
#include <udreg_pub.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct entry {
    udreg_entry_t pub; // first: the client has a pointer to it
    uint64_t addr, len;
    uint32_t users;
    struct entry *prev, *next;
};

struct udreg_cache {
    udreg_cache_attr_t attr;
    struct entry *entries; // those used last are at the end
    uint32_t count, accessed;
    struct udreg_cache *prev, *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct udreg_cache *caches;

static struct udreg_cache *by_name(const char *name)
{
    struct udreg_cache *c;
    DL_FOREACH(caches, c)
    if (!strncmp(c->attr.cache_name, name, UDREG_MAX_CACHENAME_LEN))
        return c;
    return NULL;
}

static bool known(const struct udreg_cache *cache)
{
    struct udreg_cache *c;
    DL_FOREACH(caches, c)
    if (c == cache)
        return true;
    return false;
}

udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr)
{
    if (!attr || !attr->cache_name[0] || !attr->max_entries || !attr->device_reg_func ||
        !attr->device_dereg_func)
        return UDREG_RC_INVALID_PARAM;
    udreg_return_t rc = UDREG_RC_INVALID_PARAM;
    pthread_mutex_lock(&lock);
    struct udreg_cache *c = by_name(attr->cache_name) ? NULL : calloc(1, sizeof(*c));
    if (c) {
        c->attr = *attr;
        DL_APPEND(caches, c);
        rc = UDREG_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *cache)
{
    if (!name || !cache)
        return UDREG_RC_INVALID_PARAM;
    pthread_mutex_lock(&lock);
    struct udreg_cache *c = by_name(name);
    if (c) {
        c->accessed++;
        *cache = c;
    }
    pthread_mutex_unlock(&lock);
    return c ? UDREG_RC_SUCCESS : UDREG_RC_NO_MATCH;
}

udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t cache)
{
    pthread_mutex_lock(&lock);
    bool ok = known(cache) && cache->accessed;
    if (ok)
        cache->accessed--;
    pthread_mutex_unlock(&lock);
    return ok ? UDREG_RC_SUCCESS : UDREG_RC_INVALID_PARAM;
}

static void drop(struct udreg_cache *c, struct entry *e)
{
    c->attr.device_dereg_func(e->pub.device_data, c->attr.dreg_context);
    DL_DELETE(c->entries, e);
    c->count--;
    free(e);
}

udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t cache)
{
    udreg_return_t rc = UDREG_RC_SUCCESS;
    struct udreg_cache *gone = NULL;
    pthread_mutex_lock(&lock);
    if (!known(cache))
        rc = UDREG_RC_INVALID_PARAM;
    else if (cache->accessed)
        rc = UDREG_RC_CACHE_IN_USE;
    else
        gone = cache;
    if (gone) {
        while (gone->entries)
            drop(gone, gone->entries);
        DL_DELETE(caches, gone);
    }
    pthread_mutex_unlock(&lock);
    if (gone && gone->attr.destructor_callback)
        gone->attr.destructor_callback(gone->attr.destructor_context);
    free(gone);
    return rc;
}

static struct entry *find(struct udreg_cache *c, uint64_t addr, uint64_t len)
{
    struct entry *e;
    DL_FOREACH(c->entries, e)
    if (e->addr <= addr && len <= e->len && addr - e->addr <= e->len - len)
        return e;
    return NULL;
}

// Room for one more: the unused entry that was not used for longest goes.
static bool make_room(struct udreg_cache *c)
{
    struct entry *e, *tmp;
    if (c->count < c->attr.max_entries)
        return true;
    DL_FOREACH_SAFE(c->entries, e, tmp)
    if (!e->users) {
        drop(c, e);
        return true;
    }
    return false;
}

static udreg_return_t add(struct udreg_cache *c, uint64_t addr, uint64_t len, struct entry **out)
{
    if (!make_room(c))
        return UDREG_RC_NO_SPACE;
    struct entry *e = calloc(1, sizeof(*e));
    if (e)
        e->pub.device_data =
            c->attr.device_reg_func((void *)(uintptr_t)addr, len, c->attr.reg_context);
    if (!e || !e->pub.device_data) {
        free(e);
        return UDREG_RC_ERROR_RESOURCE;
    }
    e->addr = addr;
    e->len = len;
    DL_APPEND(c->entries, e);
    c->count++;
    *out = e;
    return UDREG_RC_SUCCESS;
}

udreg_return_t UDREG_Register(udreg_cache_handle_t cache, void *addr, uint64_t length,
                              udreg_entry_t **entry)
{
    udreg_return_t rc = UDREG_RC_INVALID_PARAM;
    if (!length || !entry)
        return rc;
    pthread_mutex_lock(&lock);
    if (known(cache)) {
        struct entry *e = find(cache, (uintptr_t)addr, length);
        rc = e ? UDREG_RC_SUCCESS : add(cache, (uintptr_t)addr, length, &e);
        if (rc == UDREG_RC_SUCCESS) {
            e->users++;
            *entry = &e->pub;
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

udreg_return_t UDREG_Unregister(udreg_cache_handle_t cache, udreg_entry_t *entry)
{
    udreg_return_t rc = UDREG_RC_INVALID_PARAM;
    pthread_mutex_lock(&lock);
    struct entry *e = known(cache) ? cache->entries : NULL;
    while (e && &e->pub != entry)
        e = e->next;
    if (e && e->users) {
        rc = UDREG_RC_SUCCESS;
        DL_DELETE(cache->entries, e);
        DL_APPEND(cache->entries, e); // used last
        if (--e->users == 0 && !(cache->attr.modes & UDREG_CC_MODE_USE_LAZY_DEREG))
            drop(cache, e);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
