/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cray's registration cache: regions are registered once and found again. Link with -ludreg.
 *
 * A lazily deregistered region stays until the cache is full or destroyed. Memory that is unmapped
 * meanwhile needs no notice: Weft pins nothing, and a region follows whatever is mapped at its
 * addresses.
 */
#ifndef WEFT_UDREG_PUB_H
#define WEFT_UDREG_PUB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UDREG_MAX_CACHENAME_LEN 31

typedef enum {
    UDREG_RC_SUCCESS = 0,
    UDREG_RC_INVALID_PARAM,
    UDREG_RC_NO_MATCH,
    UDREG_RC_NO_SPACE, /* max_entries, none of which can be given up */
    UDREG_RC_ERROR_NO_DEVICE,
    UDREG_RC_ERROR_RESOURCE, /* the registration function failed */
    UDREG_RC_TABLE_FULL,
    UDREG_RC_CACHE_IN_USE
} udreg_return_t;

#define UDREG_CC_MODE_USE_LARGE_PAGES  0x01 /* no difference */
#define UDREG_CC_MODE_USE_LAZY_DEREG   0x02
#define UDREG_CC_MODE_USE_KERNEL_CACHE 0x04 /* no difference */

typedef struct udreg_cache *udreg_cache_handle_t;

typedef struct udreg_entry {
    void *device_data; /* what device_reg_func returned */
} udreg_entry_t;

typedef struct udreg_cache_attr {
    char cache_name[UDREG_MAX_CACHENAME_LEN + 1];
    uint32_t max_entries;
    uint32_t modes;
    int debug_mode; /* ignored */
    int debug_rank; /* ignored */
    void *reg_context, *dreg_context, *destructor_context;
    void *(*device_reg_func)(void *addr, uint64_t length, void *context); /* NULL: failed */
    uint32_t (*device_dereg_func)(void *registration, void *context);
    void (*destructor_callback)(void *context);
} udreg_cache_attr_t;

/* INVALID_PARAM, also for a name in use. */
udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr);
/* NO_MATCH: no cache of that name. */
udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *cache);
udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t cache);
/* CACHE_IN_USE: somebody has accessed it. */
udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t cache);

udreg_return_t UDREG_Register(udreg_cache_handle_t cache, void *addr, uint64_t length,
                              udreg_entry_t **entry);
udreg_return_t UDREG_Unregister(udreg_cache_handle_t cache, udreg_entry_t *entry);

#ifdef __cplusplus
}
#endif
#endif
