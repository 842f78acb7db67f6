// SPDX-License-Identifier: BSD-2-Clause
// Devices, queries, domains, memory, extended CQs, addresses: conventions and argument checks.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "verbs/face.h"
#include "verbs/fake_hca.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static int setup(void **state)
{
    fake = (struct fake_hca){0};
    fake.gids[0].raw[0] = 0xfe;
    fake.gids[0].raw[1] = 0x80;
    fake.gids[0].raw[15] = 1;
    memcpy(fake.gids[1].raw + 10, "\xff\xff\x0a\x00\x00\x01", 6);
    ctx = ibv_open_device(wf_face_device());
    pd = ibv_alloc_pd(ctx);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    assert_int_equal(fake.gets, 0);
    return 0;
}

static void test_device_list_has_weft0(void **state)
{
    struct ibv_device **list;
    int n;

    list = ibv_get_device_list(&n);
    assert_int_equal(n, 1);
    assert_string_equal(ibv_get_device_name(list[0]), "weft0");
    assert_null(list[1]);
    assert_int_equal(be64toh(ibv_get_device_guid(list[0])), 0x1122);
    ibv_free_device_list(list);
}

static void test_query_port_other_port_einval(void **state)
{
    struct ibv_port_attr attr;

    assert_int_equal(wf_op_query_port(ctx, 0, &attr, sizeof(attr)), EINVAL);
    assert_int_equal(wf_op_query_port(ctx, 2, &attr, sizeof(attr)), EINVAL);
    assert_int_equal(wf_op_query_port(ctx, 1, &attr, sizeof(attr)), 0);
    assert_int_equal(attr.port_cap_flags2, 0xabcd);
}

// Old programs give 48 bytes: the fields after them must not be written.
static void test_query_port_old_structure_not_overrun(void **state)
{
    struct ibv_port_attr attr;

    memset(&attr, 0x5a, sizeof(attr));
    assert_int_equal(ibv_query_port(ctx, 1, (struct _compat_ibv_port_attr *)&attr), 0);
    assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(attr.port_cap_flags2, 0x5a5a);
}

static void test_gid_table_free_slots(void **state)
{
    struct ibv_gid_entry entries[4];
    union ibv_gid gid;
    int type;

    assert_int_equal(ibv_query_gid(ctx, 1, 5, &gid), 0);
    assert_int_equal(gid.raw[0], 0);
    assert_int_equal(ibv_query_gid(ctx, 1, -1, &gid), -1);
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 5, entries, 0), ENODATA);
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 1, entries, 0), 0);
    assert_int_equal(entries[0].gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(ibv_query_gid_table(ctx, entries, 4, 0), 2);
    assert_int_equal(ibv_query_gid_table(ctx, entries, 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(ctx, entries, 0, 0), -EINVAL);
    int ibv_query_gid_type(struct ibv_context *, uint8_t, unsigned, int *);
    assert_int_equal(ibv_query_gid_type(ctx, 1, 0, &type), 0);
    assert_int_equal(type, 1);
}

static void test_pkey_index_found_and_not(void **state)
{
    assert_int_equal(ibv_get_pkey_index(ctx, 1, htobe16(0xffff)), 0);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, htobe16(1)), -1);
}

static void test_mr_optional_flags_and_zero_base(void **state)
{
    static char mem[64];
    struct ibv_mr *mr = ibv_reg_mr_iova2(pd, mem, sizeof(mem), (uintptr_t)mem,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

    assert_non_null(mr);
    assert_int_equal(fake.access, IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(fake.iova, (uintptr_t)mem);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_ZERO_BASED);
    assert_int_equal(fake.iova, 0);
    assert_ptr_equal(mr->addr, mem);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_null(ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
}

static void test_rereg_failure_leaves_region(void **state)
{
    static char mem[64], other[128];
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_pd *second = ibv_alloc_pd(ctx);
    uint32_t lkey = mr->lkey;

    assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    fake.fail = ENOMEM;
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 128, 0),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, ENOMEM);
    assert_ptr_equal(mr->addr, mem);
    assert_int_equal(mr->lkey, lkey);
    fake.fail = 0;
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
                                  second, other, 128, 0),
                     0);
    assert_ptr_equal(mr->addr, other);
    assert_int_equal(mr->length, 128);
    assert_ptr_equal(mr->pd, second);
    assert_int_not_equal(mr->lkey, lkey);
    assert_int_equal(ibv_dealloc_pd(second), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(second), 0);
}

static void test_dmabuf_of_memory_file(void **state)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    struct ibv_mr *mr;

    assert_int_equal(ftruncate(fd, 8192), 0);
    mr = ibv_reg_dmabuf_mr(pd, 100, 1000, 0x77000, fd, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(fake.iova, 0x77000);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    close(fd);
    assert_null(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, fd, 0));
    assert_int_equal(errno, EBADF);
}

static void test_dm_copies_checked(void **state)
{
    struct ibv_alloc_dm_attr attr = {.length = 64};
    char out[8] = {0};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
    struct ibv_mr *mr;

    assert_non_null(dm);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4, "abcd", 4), 0);
    assert_int_equal(ibv_memcpy_from_dm(out, dm, 4, 4), 0);
    assert_string_equal(out, "abcd");
    assert_int_equal(ibv_memcpy_to_dm(dm, 1, "abcd", 4), EINVAL);
    assert_int_equal(ibv_memcpy_to_dm(dm, 64, "abcd", 4), EINVAL);
    assert_null(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE));
    assert_null(ibv_reg_dm_mr(pd, dm, 8, 64, IBV_ACCESS_ZERO_BASED));
    mr = ibv_reg_dm_mr(pd, dm, 8, 32, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(fake.iova, 0);
    assert_int_equal(ibv_free_dm(dm), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    attr.length = WF_FACE_DM_BYTES + 1;
    assert_null(ibv_alloc_dm(ctx, &attr));
}

static void test_import_shares_domain_and_memory(void **state)
{
    static char mem[64];
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof(mem), 0);
    struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
    struct ibv_pd *pd2;
    struct ibv_mr *mr2;

    assert_non_null(other);
    pd2 = ibv_import_pd(other, pd->handle);
    assert_non_null(pd2);
    mr2 = ibv_import_mr(pd2, mr->handle);
    assert_non_null(mr2);
    assert_int_equal(mr2->rkey, mr->rkey);
    assert_null(ibv_import_pd(other, 12345));
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    ibv_unimport_pd(pd2); // while the region made in it lives
    ibv_unimport_mr(mr2);
    assert_int_equal(ibv_close_device(other), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_null(ibv_import_device(0));
    assert_int_equal(errno, EPROTONOSUPPORT);
}

static unsigned allocs, frees;

static void *count_alloc(struct ibv_pd *p, void *arg, size_t size, size_t align, uint64_t type)
{
    assert_ptr_equal(arg, &allocs);
    allocs++;
    return type == WF_VMEM_CQ ? IBV_ALLOCATOR_USE_DEFAULT
                              : aligned_alloc(align, (size + 63) & ~63u);
}

static void count_free(struct ibv_pd *p, void *arg, void *ptr, uint64_t type)
{
    frees++;
    free(ptr);
}

static void test_parent_domain_allocators_used(void **state)
{
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(ctx, &td_attr);
    struct ibv_parent_domain_init_attr attr = {
        .pd = pd,
        .td = td,
        .comp_mask =
            IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
        .alloc = count_alloc,
        .free = count_free,
        .pd_context = &allocs,
    };
    struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(parent, &srq_attr);
    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &cq_attr);

    assert_non_null(srq);
    assert_non_null(cq);
    assert_int_equal(allocs, 2);
    assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    assert_int_equal(frees, 1);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
}

static void test_cq_bad_arguments(void **state)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = 1u << 20};

    assert_null(ibv_create_cq(ctx, 0, NULL, NULL, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_cq(ctx, (1 << 16) + 1, NULL, NULL, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_cq(ctx, 1, NULL, NULL, ctx->num_comp_vectors));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_cq_ex(ctx, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
}

static void test_cq_ex_reads_the_completion_at_hand(void **state)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
    struct ibv_qp_init_attr init = {
        .send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
    struct ibv_send_wr second = {.wr_id = 2}, first = {.wr_id = 1, .next = &second}, *bad;
    struct ibv_poll_cq_attr poll = {0};

    assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
    assert_int_equal(ibv_post_send(qp, &first, &bad), EINVAL);
    assert_ptr_equal(bad, &first);
    assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE), 0);
    assert_int_equal(ibv_post_send(qp, &first, &bad), 0);
    assert_int_equal(ibv_start_poll(cq, &poll), 0);
    assert_int_equal(cq->wr_id, 1);
    assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
    assert_int_equal(ibv_wc_read_completion_ts(cq), 5000000000u);
    assert_true(ibv_wc_read_completion_wallclock_ns(cq) > 1000000000000000000u);
    assert_int_equal(ibv_next_poll(cq), 0);
    assert_int_equal(cq->wr_id, 2);
    assert_int_equal(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void test_ah_without_grh_refused(void **state)
{
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = 5};

    assert_null(ibv_create_ah(pd, &attr));
    assert_int_equal(errno, EINVAL);
}

static const uint8_t ipv4_area[40] = {
    [20] = 0x45, 0x04, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
};

static void test_ah_from_wc_ipv4_sender(void **state)
{
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
    struct ibv_ah_attr attr;
    struct ibv_grh grh;

    memcpy(&grh, ipv4_area, sizeof(grh));
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
    assert_int_equal(attr.is_global, 1);
    assert_int_equal(attr.grh.sgid_index, 1);
    assert_int_equal(attr.grh.traffic_class, 4);
    assert_memory_equal(attr.grh.dgid.raw + 10, "\xff\xff\x0a\x00\x00\x02", 6);
    assert_int_equal(attr.sl, 3);
}

static void test_ah_from_wc_ipv6_sender(void **state)
{
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_ah_attr attr;
    struct ibv_grh grh = {.version_tclass_flow = htobe32(6u << 28 | 0x12u << 20 | 0x345)};

    grh.dgid = fake.gids[0];
    grh.sgid.raw[0] = 0xfe;
    grh.sgid.raw[15] = 9;
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
    assert_int_equal(attr.grh.sgid_index, 0);
    assert_int_equal(attr.grh.flow_label, 0x345);
    assert_int_equal(attr.grh.traffic_class, 0x12);
    assert_int_equal(attr.grh.dgid.raw[15], 9);
    grh.dgid.raw[15] = 77;
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
}

static void test_rates_both_ways(void **state)
{
    assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
    assert_int_equal(mult_to_ibv_rate(16), IBV_RATE_40_GBPS);
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
    assert_int_equal(mbps_to_ibv_rate(103125), IBV_RATE_100_GBPS);
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
    assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_device_list_has_weft0),
        TEST(test_query_port_other_port_einval),
        TEST(test_query_port_old_structure_not_overrun),
        TEST(test_gid_table_free_slots),
        TEST(test_pkey_index_found_and_not),
        TEST(test_mr_optional_flags_and_zero_base),
        TEST(test_rereg_failure_leaves_region),
        TEST(test_dmabuf_of_memory_file),
        TEST(test_dm_copies_checked),
        TEST(test_import_shares_domain_and_memory),
        TEST(test_parent_domain_allocators_used),
        TEST(test_cq_bad_arguments),
        TEST(test_cq_ex_reads_the_completion_at_hand),
        TEST(test_ah_without_grh_refused),
        TEST(test_ah_from_wc_ipv4_sender),
        TEST(test_ah_from_wc_ipv6_sender),
        TEST(test_rates_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
