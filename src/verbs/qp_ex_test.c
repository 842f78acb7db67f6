// SPDX-License-Identifier: BSD-2-Clause
// The builders: what they hand to the engine.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "verbs/face.h"
#include "verbs/fake_hca.h"
#include <string.h>

struct fixture {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
};

#define OPS                                                                                        \
    (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |              \
     IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | WF_QP_EX_WITH_FLUSH)

static struct ibv_qp *create(struct fixture *f, enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = f->cq,
        .recv_cq = f->cq,
        .qp_type = type,
        .cap = {.max_send_sge = 3},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = f->pd,
        .send_ops_flags = ops,
    };

    return ibv_create_qp_ex(f->ctx, &init);
}

static int setup(void **state)
{
    static struct fixture f;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    fake = (struct fake_hca){0};
    f.ctx = ibv_open_device(wf_face_device());
    f.pd = ibv_alloc_pd(f.ctx);
    f.cq = ibv_create_cq(f.ctx, 16, NULL, NULL, 0);
    f.qp = create(&f, IBV_QPT_RC, OPS);
    assert_non_null(f.qp);
    f.ex = ibv_qp_to_qp_ex(f.qp);
    assert_non_null(f.ex);
    assert_int_equal(ibv_modify_qp(f.qp, &attr, IBV_QP_STATE), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ibv_destroy_qp(f->qp), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
    assert_int_equal(ibv_close_device(f->ctx), 0);
    return 0;
}

// P07: each SGE keeps its own length.
static void test_builder_sge_list_passed_on(void **state)
{
    struct fixture *f = *state;
    struct ibv_sge sg[] = {{0x1000, 1, 7}, {0x2000, 4097, 7}, {0x4000, 13, 7}};

    ibv_wr_start(f->ex);
    f->ex->wr_id = 5;
    f->ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(f->ex);
    ibv_wr_set_sge_list(f->ex, 3, sg);
    memset(sg, 0, sizeof(sg)); // the list is the caller's again
    assert_int_equal(ibv_wr_complete(f->ex), 0);
    assert_int_equal(fake.n_sends, 1);
    assert_int_equal(fake.sends[0].wr.wr_id, 5);
    assert_int_equal(fake.sends[0].wr.num_sge, 3);
    assert_int_equal(fake.sends[0].sges[1].length, 4097);
    assert_int_equal(fake.sends[0].sges[2].addr, 0x4000);
}

static void test_builder_chain_keeps_order_and_inline_lists(void **state)
{
    struct fixture *f = *state;
    char text[] = "inline list";
    struct ibv_data_buf bufs[] = {{text, 7}, {text + 7, 4}};
    uint64_t value = 0x1122334455667788;

    ibv_wr_start(f->ex);
    for (uint64_t i = 0; i < 40; i++) {
        f->ex->wr_id = i;
        ibv_wr_send_imm(f->ex, (__be32)i);
        ibv_wr_set_inline_data_list(f->ex, 2, bufs);
    }
    f->ex->wr_id = 40;
    ibv_wr_atomic_write(f->ex, 3, 0x8000, &value);
    memset(text, 'x', sizeof(text));
    assert_int_equal(ibv_wr_complete(f->ex), 0);
    assert_int_equal(fake.n_sends, 41);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(fake.sends[i].wr.wr_id, i);
        assert_int_equal(fake.sends[i].wr.imm_data, i);
        assert_int_equal(fake.sends[i].len, 11);
        assert_memory_equal(fake.sends[i].data, "inline list", 11);
    }
    assert_int_equal(fake.sends[40].wr.opcode, IBV_WR_ATOMIC_WRITE);
    assert_memory_equal(fake.sends[40].data, &value, 8);
}

static void test_builder_bad_request_posts_nothing(void **state)
{
    struct fixture *f = *state;
    static char big[65];

    ibv_wr_start(f->ex);
    ibv_wr_send(f->ex);
    ibv_wr_send(f->ex);
    ibv_wr_set_inline_data(f->ex, big, sizeof(big)); // 64 fit
    assert_int_equal(ibv_wr_complete(f->ex), EINVAL);
    ibv_wr_start(f->ex);
    ibv_wr_send(f->ex);
    ibv_wr_rdma_read(f->ex, 1, 2); // not among the operations asked for
    assert_int_equal(ibv_wr_complete(f->ex), EINVAL);
    ibv_wr_start(f->ex);
    ibv_wr_send(f->ex);
    ibv_wr_abort(f->ex);
    assert_int_equal(fake.n_sends, 0);
    ibv_wr_start(f->ex);
    ibv_wr_send(f->ex);
    assert_int_equal(ibv_wr_complete(f->ex), 0);
    assert_int_equal(fake.n_sends, 1);
}

static void test_builder_chain_without_room_posts_nothing(void **state)
{
    struct fixture *f = *state;

    ibv_wr_start(f->ex);
    for (unsigned i = 0; i < FAKE_SENDS + 1; i++)
        ibv_wr_send(f->ex);
    assert_int_equal(ibv_wr_complete(f->ex), ENOMEM);
    assert_int_equal(fake.n_sends, 0);
}

static void test_builder_flush_names_its_range(void **state)
{
    struct fixture *f = *state;

    ibv_wr_start(f->ex);
    ((struct wf_vqp *)f->ex)->wr_flush(f->ex, 9, 0x5000, 4096, 1, 1);
    assert_int_equal(ibv_wr_complete(f->ex), 0);
    assert_int_equal(fake.sends[0].wr.opcode, WF_WR_FLUSH);
    assert_int_equal(fake.sends[0].wr.wr.rdma.rkey, 9);
    assert_int_equal(fake.sends[0].sges[0].length, 4096);
    assert_int_equal(fake.sends[0].wr.imm_data, 0x11);
}

static void test_create_operation_of_other_type_refused(void **state)
{
    struct fixture *f = *state;

    assert_null(create(f, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(create(f, IBV_QPT_RC, IBV_QP_EX_WITH_TSO));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(create(f, IBV_QPT_RAW_PACKET, 0));
    assert_int_equal(errno, EOPNOTSUPP);
}

static void test_plain_qp_has_no_builder(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr init = {.send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(f->pd, &init);

    assert_non_null(qp);
    assert_int_equal(init.cap.max_inline_data, 64);
    assert_null(ibv_qp_to_qp_ex(qp));
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_builder_sge_list_passed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_builder_chain_keeps_order_and_inline_lists, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_builder_bad_request_posts_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_builder_chain_without_room_posts_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_builder_flush_names_its_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_operation_of_other_type_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_plain_qp_has_no_builder, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
