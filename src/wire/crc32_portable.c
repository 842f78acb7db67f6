// SPDX-License-Identifier: BSD-2-Clause
#include "wire/crc32.h"

#include <pthread.h>

// tables[k][b]: effect of byte b followed by k zero bytes, so that eight bytes go in one step.
static uint32_t tables[8][256];

static void fill_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int i = 0; i < 8; i++)
            c = c >> 1 ^ (WF_CRC32_POLY & -(c & 1));
        tables[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

uint32_t wf_crc32_portable(uint32_t crc, const void *buf, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    const uint8_t *p = buf;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
              tables[0][p[7]];
    }
    while (len--)
        crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
    return ~crc;
}
