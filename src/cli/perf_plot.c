// SPDX-License-Identifier: BSD-2-Clause
// Two charts in one SVG file: latency (median, with the band from minimum to p99) and bandwidth, by
// message size; both axes logarithmic.
#include "cli/perf.h"

#include <math.h>
#include <stdio.h>

#define W      460.0
#define H      300.0
#define LEFT   70.0
#define TOP    60.0
#define GAP    110.0
#define WIDTH  (LEFT + W + GAP + W + 40)
#define HEIGHT (TOP + H + 80)

struct axis {
    double lo, hi; // decades
};

struct chart {
    FILE *out;
    double x0;
    struct axis x, y;
};

static double px(const struct chart *c, double v)
{
    return c->x0 + W * (log10(v) - c->x.lo) / (c->x.hi - c->x.lo);
}

static double py(const struct chart *c, double v)
{
    return TOP + H - H * (log10(v > 0 ? v : 1e-3) - c->y.lo) / (c->y.hi - c->y.lo);
}

static void size_text(double v, char *buf, size_t len)
{
    if (v >= 1048576)
        snprintf(buf, len, "%.0f MiB", v / 1048576);
    else if (v >= 1024)
        snprintf(buf, len, "%.0f KiB", v / 1024);
    else
        snprintf(buf, len, "%.0f B", v);
}

static void frame(const struct chart *c, const char *title, const char *unit,
                  const struct perf_latency *sizes, unsigned n)
{
    fprintf(c->out, "<text x='%.1f' y='%.1f' class='t'>%s</text>\n", c->x0, TOP - 24, title);
    for (int d = (int)c->y.lo; d <= (int)c->y.hi; d++) {
        double y = py(c, pow(10, d));
        fprintf(c->out,
                "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='g'/>"
                "<text x='%.1f' y='%.1f' class='l' text-anchor='end'>%g</text>\n",
                c->x0, y, c->x0 + W, y, c->x0 - 8, y + 4, pow(10, d));
    }
    for (unsigned i = 0; i < n; i++) {
        char text[16];
        double x = px(c, sizes[i].size);
        size_text(sizes[i].size, text, sizeof(text));
        fprintf(c->out,
                "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='g'/>"
                "<text x='%.1f' y='%.1f' class='l' text-anchor='middle'>%s</text>\n",
                x, TOP, x, TOP + H, x, TOP + H + 18, text);
    }
    fprintf(c->out,
            "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' class='f'/>"
            "<text x='%.1f' y='%.1f' class='l'>%s</text>"
            "<text x='%.1f' y='%.1f' class='l' text-anchor='middle'>message size</text>\n",
            c->x0, TOP, W, H, c->x0, TOP - 8, unit, c->x0 + W / 2, TOP + H + 40);
}

static void latencies(FILE *out, const struct perf_results *r, struct axis x)
{
    double lo = 1e9, hi = 0;
    for (unsigned i = 0; i < r->nlat; i++) {
        lo = fmin(lo, r->lat[i].min);
        hi = fmax(hi, r->lat[i].p99);
    }
    struct chart c = {out, LEFT, x, {floor(log10(lo)), ceil(log10(hi))}};
    frame(&c, "One-way latency of SEND", "\xc2\xb5s: median, band from minimum to p99", r->lat,
          r->nlat);
    fputs("<polygon class='b' points='", out);
    for (unsigned i = 0; i < r->nlat; i++)
        fprintf(out, "%.1f,%.1f ", px(&c, r->lat[i].size), py(&c, r->lat[i].p99));
    for (unsigned i = r->nlat; i-- > 0;)
        fprintf(out, "%.1f,%.1f ", px(&c, r->lat[i].size), py(&c, r->lat[i].min));
    fputs("'/>\n<polyline class='s' stroke='#1f6fb2' points='", out);
    for (unsigned i = 0; i < r->nlat; i++)
        fprintf(out, "%.1f,%.1f ", px(&c, r->lat[i].size), py(&c, r->lat[i].p50));
    fputs("'/>\n", out);
    for (unsigned i = 0; i < r->nlat; i++)
        fprintf(out, "<circle cx='%.1f' cy='%.1f' r='3' fill='#1f6fb2'/>\n", px(&c, r->lat[i].size),
                py(&c, r->lat[i].p50));
}

static void line(const struct chart *c, const struct perf_bandwidth *b, unsigned n,
                 const char *colour, const char *name, int place)
{
    fprintf(c->out, "<polyline class='s' stroke='%s' points='", colour);
    for (unsigned i = 0; i < n; i++)
        fprintf(c->out, "%.1f,%.1f ", px(c, b[i].size), py(c, b[i].bytes / 1e6));
    fputs("'/>\n", c->out);
    for (unsigned i = 0; i < n; i++)
        fprintf(c->out, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n", px(c, b[i].size),
                py(c, b[i].bytes / 1e6), colour);
    double y = TOP + H - 50 + place * 18;
    fprintf(c->out,
            "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='s' stroke='%s'/>"
            "<text x='%.1f' y='%.1f' class='l'>%s</text>\n",
            c->x0 + W - 100, y, c->x0 + W - 76, y, colour, c->x0 + W - 70, y + 4, name);
}

static void bandwidths(FILE *out, const struct perf_results *r, struct axis x)
{
    double lo = 1e12, hi = 1;
    for (unsigned i = 0; i < r->nbw; i++) {
        lo = fmin(lo, fmin(r->send[i].bytes, fmin(r->write[i].bytes, r->read[i].bytes)) / 1e6);
        hi = fmax(hi, fmax(r->send[i].bytes, fmax(r->write[i].bytes, r->read[i].bytes)) / 1e6);
    }
    struct chart c = {out, LEFT + W + GAP, x, {floor(log10(lo)), ceil(log10(hi))}};
    frame(&c, "Bandwidth", "MB/s", r->lat, r->nlat);
    line(&c, r->send, r->nbw, "#1f6fb2", "SEND", 0);
    line(&c, r->write, r->nbw, "#c8553d", "WRITE", 1);
    line(&c, r->read, r->nbw, "#3c8d5a", "READ", 2);
}

int perf_plot(const struct perf_results *r, const char *path)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return -1;
    struct axis x = {log10(r->lat[0].size) - 0.1, log10(r->lat[r->nlat - 1].size) + 0.1};
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' "
            "font-family='sans-serif'>\n"
            "<style>.t{font-size:16px;font-weight:bold}.l{font-size:11px;fill:#444}"
            ".g{stroke:#e4e4e4}.f{fill:none;stroke:#999}.s{fill:none;stroke-width:2}"
            ".b{fill:#1f6fb2;fill-opacity:.15}</style>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n",
            WIDTH, HEIGHT);
    latencies(out, r, x);
    bandwidths(out, r, x);
    fprintf(out,
            "<text x='%.1f' y='%.1f' class='l'>weft perf " WEFT_VERSION ": %s</text>\n</svg>\n",
            LEFT, HEIGHT - 14, r->peer);
    return fclose(out);
}
