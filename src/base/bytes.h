// SPDX-License-Identifier: BSD-2-Clause
// Bounded byte cursors. Every field of a packet or a MAD goes through these: bounds are checked
// once, here, and a decoder reads like the specification's field list.
#ifndef WF_BASE_BYTES_H
#define WF_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A read past the end sets `bad` and yields zero; the caller checks wf_reader_ok() once at the end.
struct wf_reader {
    const uint8_t *p;
    size_t left;
    bool bad;
};

// A write past the end sets `bad` and is dropped.
struct wf_writer {
    uint8_t *p;
    size_t left;
    bool bad;
};

static inline struct wf_reader wf_reader_of(const void *buf, size_t len)
{
    return (struct wf_reader){.p = buf, .left = len};
}

static inline struct wf_writer wf_writer_of(void *buf, size_t len)
{
    return (struct wf_writer){.p = buf, .left = len};
}

static inline bool wf_reader_ok(const struct wf_reader *r)
{
    return !r->bad;
}

static inline bool wf_writer_ok(const struct wf_writer *w)
{
    return !w->bad;
}

// The next n bytes, or NULL (and `bad`) when fewer are left.
static inline const uint8_t *wf_get_raw(struct wf_reader *r, size_t n)
{
    if (r->bad || r->left < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->left -= n;
    return p;
}

// n-byte big-endian number, 1 <= n <= 8.
static inline uint64_t wf_get_be(struct wf_reader *r, size_t n)
{
    const uint8_t *p = wf_get_raw(r, n);
    uint64_t be = 0;
    if (p)
        memcpy(&be, p, n);
    return be64toh(be) >> (64 - 8 * n);
}

static inline uint8_t wf_get_u8(struct wf_reader *r)
{
    return (uint8_t)wf_get_be(r, 1);
}

static inline uint16_t wf_get_u16(struct wf_reader *r)
{
    return (uint16_t)wf_get_be(r, 2);
}

static inline uint32_t wf_get_u24(struct wf_reader *r)
{
    return (uint32_t)wf_get_be(r, 3);
}

static inline uint32_t wf_get_u32(struct wf_reader *r)
{
    return (uint32_t)wf_get_be(r, 4);
}

static inline uint64_t wf_get_u64(struct wf_reader *r)
{
    return wf_get_be(r, 8);
}

static inline void wf_get_bytes(struct wf_reader *r, void *dst, size_t n)
{
    const uint8_t *p = wf_get_raw(r, n);
    if (p)
        memcpy(dst, p, n);
    else
        memset(dst, 0, n);
}

static inline void wf_skip(struct wf_reader *r, size_t n)
{
    (void)wf_get_raw(r, n);
}

// Room for the next n bytes, or NULL (and `bad`).
static inline uint8_t *wf_put_raw(struct wf_writer *w, size_t n)
{
    if (w->bad || w->left < n) {
        w->bad = true;
        return NULL;
    }
    uint8_t *p = w->p;
    w->p += n;
    w->left -= n;
    return p;
}

static inline void wf_put_be(struct wf_writer *w, size_t n, uint64_t v)
{
    uint8_t *p = wf_put_raw(w, n);
    uint64_t be = htobe64(v << (64 - 8 * n));
    if (p)
        memcpy(p, &be, n);
}

static inline void wf_put_u8(struct wf_writer *w, uint8_t v)
{
    wf_put_be(w, 1, v);
}

static inline void wf_put_u16(struct wf_writer *w, uint16_t v)
{
    wf_put_be(w, 2, v);
}

static inline void wf_put_u24(struct wf_writer *w, uint32_t v)
{
    wf_put_be(w, 3, v);
}

static inline void wf_put_u32(struct wf_writer *w, uint32_t v)
{
    wf_put_be(w, 4, v);
}

static inline void wf_put_u64(struct wf_writer *w, uint64_t v)
{
    wf_put_be(w, 8, v);
}

static inline void wf_put_bytes(struct wf_writer *w, const void *src, size_t n)
{
    uint8_t *p = wf_put_raw(w, n);
    if (p && n)
        memcpy(p, src, n);
}

static inline void wf_put_zero(struct wf_writer *w, size_t n)
{
    uint8_t *p = wf_put_raw(w, n);
    if (p)
        memset(p, 0, n);
}

#endif
