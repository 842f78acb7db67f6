// SPDX-License-Identifier: BSD-2-Clause
// What the kernel would show of the devices, asked from libibverbs beside this library through the
// functions that any program uses.
#include "preload/preload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ibv_query_port is a macro for programs; the library's function has this form.
#undef ibv_query_port

struct verbs {
    struct ibv_device **(*get_device_list)(int *n);
    void (*free_device_list)(struct ibv_device **list);
    struct ibv_context *(*open_device)(struct ibv_device *dev);
    int (*close_device)(struct ibv_context *ctx);
    int (*query_device)(struct ibv_context *ctx, struct ibv_device_attr *attr);
    int (*query_port)(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
    int (*query_pkey)(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey);
    int (*query_gid_ex)(struct ibv_context *ctx, uint32_t port, uint32_t index,
                        struct ibv_gid_entry *entry, uint32_t flags, size_t size);
};

// A device on its way into the tree.
struct device {
    const char *root;
    const struct verbs *v;
    struct ibv_context *ctx;
    const char *name, *uverbs;
    char dir[256];  // .../weft0/infiniband/weft0
    char card[128]; // .../weft0, what "device" links point to
};

static bool load_verbs(struct verbs *v)
{
    Dl_info self;
    char path[PATH_MAX];
    if (!dladdr((void *)load_verbs, &self) || !self.dli_fname)
        return false;
    const char *slash = strrchr(self.dli_fname, '/');
    int n = snprintf(path, sizeof(path), "%.*slibibverbs.so.1",
                     slash ? (int)(slash + 1 - self.dli_fname) : 0, self.dli_fname);
    void *lib = n < (int)sizeof(path) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!lib)
        return false;
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"ibv_get_device_list", &v->get_device_list},
        {"ibv_free_device_list", &v->free_device_list},
        {"ibv_open_device", &v->open_device},
        {"ibv_close_device", &v->close_device},
        {"ibv_query_device", &v->query_device},
        {"ibv_query_port", &v->query_port},
        {"ibv_query_pkey", &v->query_pkey},
        {"_ibv_query_gid_ex", &v->query_gid_ex},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *fn = dlsym(lib, wanted[i].name);
        if (!fn)
            return false;
        memcpy(wanted[i].slot, &fn, sizeof(fn));
    }
    return true;
}

__attribute__((format(printf, 4, 5))) static void put(const struct device *d, const char *dir,
                                                      const char *name, const char *fmt, ...)
{
    char file[512], text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(file, sizeof(file), "%s/%s", dir, name);
    preload_tree_file(d->root, file, "%s\n", text);
}

static void put_guid(const struct device *d, const char *name, __be64 guid)
{
    const uint8_t *b = (const uint8_t *)&guid;
    put(d, d->dir, name, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
        b[6], b[7]);
}

static void fill_device(const struct device *d)
{
    struct ibv_device_attr attr;
    if (d->v->query_device(d->ctx, &attr) != 0)
        return;
    put(d, d->dir, "node_type", "1: CA");
    put(d, d->dir, "node_desc", "%s", d->name);
    put(d, d->dir, "fw_ver", "%.63s", attr.fw_ver);
    put(d, d->dir, "hw_rev", "%x", attr.hw_ver);
    put(d, d->dir, "hca_type", "Weft");
    put(d, d->dir, "board_id", "weft");
    put_guid(d, "node_guid", attr.node_guid);
    put_guid(d, "sys_image_guid", attr.sys_image_guid);
}

static void fill_card(const struct device *d)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    char list[32], link[512];
    snprintf(list, sizeof(list), cpus > 1 ? "0-%ld" : "0", cpus - 1);
    put(d, d->card, "numa_node", "-1");
    put(d, d->card, "local_cpulist", "%s", list);
    // The mask form has a comma after each 32 CPUs, most significant first.
    char mask[512] = "";
    for (long word = (cpus - 1) / 32; word >= 0; word--) {
        long bits = cpus - word * 32;
        uint32_t m = bits >= 32 ? UINT32_MAX : (1u << bits) - 1;
        size_t n = strlen(mask);
        snprintf(mask + n, sizeof(mask) - n, "%s%08x", n ? "," : "", m);
    }
    put(d, d->card, "local_cpus", "%s", mask);
    put(d, d->card, "uevent", "DRIVER=weft");

    // From the class folders to the device and back, as the kernel links them.
    snprintf(link, sizeof(link), "%s/device", d->dir);
    preload_tree_link(d->root, link, "../..");
    snprintf(link, sizeof(link), "sys/class/infiniband/%s", d->name);
    char target[512];
    snprintf(target, sizeof(target), "../../../%s", d->dir);
    preload_tree_link(d->root, link, target);
}

static void fill_uverbs(const struct device *d)
{
    char dir[256], link[512], target[512];
    snprintf(dir, sizeof(dir), "%s/infiniband_verbs/%s", d->card, d->uverbs);
    put(d, dir, "ibdev", "%s", d->name);
    put(d, dir, "abi_version", "1");
    put(d, dir, "dev", "231:192");
    snprintf(link, sizeof(link), "%s/device", dir);
    preload_tree_link(d->root, link, "../..");
    snprintf(link, sizeof(link), "sys/class/infiniband_verbs/%s", d->uverbs);
    snprintf(target, sizeof(target), "../../../%s", dir);
    preload_tree_link(d->root, link, target);
    preload_tree_file(d->root, "sys/class/infiniband_verbs/abi_version", "6\n");
}

static const char *state_text(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_DOWN:
        return "1: DOWN";
    case IBV_PORT_INIT:
        return "2: INIT";
    case IBV_PORT_ARMED:
        return "3: ARMED";
    case IBV_PORT_ACTIVE:
        return "4: ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
        return "5: ACTIVE_DEFER";
    case IBV_PORT_NOP:
        break;
    }
    return "0: NOP";
}

static const char *rate_text(const struct ibv_port_attr *p)
{
    static const struct {
        uint8_t speed, width;
        const char *text;
    } rates[] = {
        {32, 2, "100 Gb/sec (4X EDR)"},  {64, 2, "200 Gb/sec (4X HDR)"},
        {128, 2, "400 Gb/sec (4X NDR)"}, {16, 2, "56 Gb/sec (4X FDR)"},
        {4, 2, "40 Gb/sec (4X QDR)"},    {2, 2, "20 Gb/sec (4X DDR)"},
        {1, 2, "10 Gb/sec (4X SDR)"},    {32, 1, "25 Gb/sec (1X EDR)"},
        {4, 1, "10 Gb/sec (1X QDR)"},    {1, 1, "2.5 Gb/sec (1X SDR)"},
    };
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        if (rates[i].speed == p->active_speed && rates[i].width == p->active_width)
            return rates[i].text;
    return "100 Gb/sec (4X EDR)";
}

static void fill_gid(const struct device *d, const char *port, uint32_t index,
                     const struct ibv_gid_entry *e)
{
    char name[64], file[512], ifname[IF_NAMESIZE];
    const uint8_t *g = e->gid.raw;
    snprintf(name, sizeof(name), "gids/%u", index);
    put(d, port, name, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
        g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13],
        g[14], g[15]);
    static const uint8_t none[16];
    bool used = memcmp(g, none, sizeof(none)) != 0;
    if (used && e->gid_type == IBV_GID_TYPE_ROCE_V2 && if_indextoname(e->ndev_ifindex, ifname)) {
        snprintf(name, sizeof(name), "gid_attrs/types/%u", index);
        put(d, port, name, "RoCE v2");
        snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", index);
        put(d, port, name, "%s", ifname);
        return;
    }
    // The kernel's files of a free index cannot be read; here they are not there.
    snprintf(file, sizeof(file), "%s/gid_attrs/types/%u", port, index);
    preload_tree_remove(d->root, file);
    snprintf(file, sizeof(file), "%s/gid_attrs/ndevs/%u", port, index);
    preload_tree_remove(d->root, file);
}

// device/net/ shows the interface behind the device: programs take its first address, so it is the
// one of the first IPv4 GID when there is one.
static void fill_net(const struct device *d, uint32_t ifindex)
{
    char dir[PATH_MAX], link[512], target[256], ifname[IF_NAMESIZE];
    if (!if_indextoname(ifindex, ifname))
        ifname[0] = 0;
    snprintf(dir, sizeof(dir), "%s/%s/net", d->root, d->card);
    DIR *all = opendir(dir);
    for (struct dirent *e; all && (e = readdir(all));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, ifname) != 0) {
            snprintf(link, sizeof(link), "%s/net/%.63s", d->card, e->d_name);
            preload_tree_remove(d->root, link);
        }
    if (all)
        closedir(all);
    if (!ifname[0])
        return;
    snprintf(link, sizeof(link), "%s/net/%s", d->card, ifname);
    snprintf(target, sizeof(target), "/sys/class/net/%s", ifname);
    preload_tree_link(d->root, link, target);
}

static void fill_port(const struct device *d, uint8_t number)
{
    char port[300], name[32];
    struct ibv_port_attr p;
    memset(&p, 0, sizeof(p));
    if (d->v->query_port(d->ctx, number, &p) != 0)
        return;
    snprintf(port, sizeof(port), "%s/ports/%u", d->dir, number);
    put(d, port, "state", "%s", state_text(p.state));
    put(d, port, "phys_state", "%s", p.phys_state == 5 ? "5: LinkUp" : "3: Disabled");
    put(d, port, "rate", "%s", rate_text(&p));
    put(d, port, "lid", "0x%x", p.lid);
    put(d, port, "lid_mask_count", "%u", p.lmc);
    put(d, port, "sm_lid", "0x%x", p.sm_lid);
    put(d, port, "sm_sl", "%u", p.sm_sl);
    put(d, port, "cap_mask", "0x%08x", p.port_cap_flags);
    put(d, port, "link_layer", "%s",
        p.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
    for (int i = 0; i < p.pkey_tbl_len && i < 128; i++) {
        __be16 pkey = 0;
        d->v->query_pkey(d->ctx, number, i, &pkey);
        snprintf(name, sizeof(name), "pkeys/%d", i);
        put(d, port, name, "0x%04x", be16toh(pkey));
    }
    uint32_t net4 = 0, net6 = 0;
    for (int i = 0; i < p.gid_tbl_len && i < 256; i++) {
        static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
        struct ibv_gid_entry e;
        memset(&e, 0, sizeof(e));
        if (d->v->query_gid_ex(d->ctx, number, (uint32_t)i, &e, 0, sizeof(e)) != 0)
            memset(&e, 0, sizeof(e));
        fill_gid(d, port, (uint32_t)i, &e);
        if (!net4 && memcmp(e.gid.raw, v4, sizeof(v4)) == 0)
            net4 = e.ndev_ifindex;
        if (!net6)
            net6 = e.ndev_ifindex;
    }
    if (number == 1)
        fill_net(d, net4 ? net4 : net6);
}

static void fill_one(const char *root, const struct verbs *v, struct ibv_device *dev)
{
    struct device d = {.root = root, .v = v, .name = dev->name, .uverbs = dev->dev_name};
    if (strchr(d.name, '/') || strchr(d.uverbs, '/') || !(d.ctx = v->open_device(dev)))
        return;
    snprintf(d.card, sizeof(d.card), "sys/devices/virtual/weft/%.63s", d.name);
    snprintf(d.dir, sizeof(d.dir), "%s/infiniband/%.63s", d.card, d.name);
    struct ibv_device_attr attr;
    fill_device(&d);
    fill_card(&d);
    fill_uverbs(&d);
    if (v->query_device(d.ctx, &attr) == 0)
        for (unsigned port = 1; port <= attr.phys_port_cnt; port++)
            fill_port(&d, (uint8_t)port);
    v->close_device(d.ctx);
}

void preload_tree_fill(const char *root)
{
    static struct verbs v;
    static int loaded = -1;
    // Nodes are seen as links to /dev/null: a character device that anyone may read and write.
    for (const struct preload_node *n = preload_nodes; n->path; n++)
        preload_tree_link(root, n->path + 1, "/dev/null");
    if (loaded < 0)
        loaded = load_verbs(&v);
    int count = 0;
    struct ibv_device **list = loaded ? v.get_device_list(&count) : NULL;
    for (int i = 0; list && i < count; i++)
        fill_one(root, &v, list[i]);
    if (list)
        v.free_device_list(list);
}
