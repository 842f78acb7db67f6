// SPDX-License-Identifier: BSD-2-Clause
#include "base/pcapng.h"

#include <string.h>

#define BLOCK_SECTION   0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET    6u
#define LINK_ETHERNET   1u
#define OPT_COMMENT     1u
#define OPT_IF_NAME     2u
#define OPT_IF_TSRESOL  9u
#define OPT_APPLICATION 4u

// Numbers are in the writer's own order: the section header says which that is.
struct out {
    uint8_t *p;
    size_t len, room;
};

static void put(struct out *o, const void *data, size_t n)
{
    size_t padded = (n + 3) & ~(size_t)3;
    if (o->len + padded > o->room) {
        o->len = o->room + 1;
        return;
    }
    memcpy(o->p + o->len, data, n);
    memset(o->p + o->len + n, 0, padded - n);
    o->len += padded;
}

static void put_u32(struct out *o, uint32_t v)
{
    put(o, &v, sizeof(v));
}

static void put_option(struct out *o, uint16_t code, const void *data, size_t n)
{
    uint16_t head[2] = {code, (uint16_t)n};
    put(o, head, sizeof(head));
    put(o, data, n);
}

static size_t begin(struct out *o, uint32_t type)
{
    size_t at = o->len;
    put_u32(o, type);
    put_u32(o, 0);
    return at;
}

static void end(struct out *o, size_t at)
{
    uint32_t len = (uint32_t)(o->len - at) + 4;
    put_u32(o, len);
    if (o->len <= o->room)
        memcpy(o->p + at + 4, &len, sizeof(len));
}

size_t wf_pcapng_header(uint8_t *buf, size_t room)
{
    static const uint16_t version[2] = {1, 0}, link[2] = {LINK_ETHERNET, 0};
    static const uint8_t nanoseconds = 9;
    uint64_t unknown = UINT64_MAX;
    struct out o = {.p = buf, .room = room};
    size_t at = begin(&o, BLOCK_SECTION);
    put_u32(&o, 0x1a2b3c4d);
    put(&o, version, sizeof(version));
    put(&o, &unknown, sizeof(unknown));
    put_option(&o, OPT_APPLICATION, "Weft " WEFT_VERSION, strlen("Weft " WEFT_VERSION));
    put_option(&o, 0, "", 0);
    end(&o, at);
    at = begin(&o, BLOCK_INTERFACE);
    put(&o, link, sizeof(link));
    put_u32(&o, 0); // no limit of length
    put_option(&o, OPT_IF_NAME, "weft0", 5);
    put_option(&o, OPT_IF_TSRESOL, &nanoseconds, 1);
    put_option(&o, 0, "", 0);
    end(&o, at);
    return o.len <= room ? o.len : 0;
}

size_t wf_pcapng_packet(uint8_t *buf, size_t room, uint64_t ns, const uint8_t *frame, uint32_t cap,
                        uint32_t len, const char *comment)
{
    struct out o = {.p = buf, .room = room};
    size_t at = begin(&o, BLOCK_PACKET);
    put_u32(&o, 0);
    put_u32(&o, (uint32_t)(ns >> 32));
    put_u32(&o, (uint32_t)ns);
    put_u32(&o, cap);
    put_u32(&o, len);
    put(&o, frame, cap);
    if (comment && *comment) {
        put_option(&o, OPT_COMMENT, comment, strlen(comment));
        put_option(&o, 0, "", 0);
    }
    end(&o, at);
    return o.len <= room ? o.len : 0;
}
