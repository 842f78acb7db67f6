// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <alps/libalpslli.h>
#include <alps/libalpsutil.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <udreg_pub.h>

static void test_alps_credentials_are_those_of_the_environment(void **state)
{
    (void)state;
    int status;
    size_t len;
    uint64_t apid;
    alpsAppLLIGni_t gni;
    setenv("PMI_GNI_COOKIE", "4711:4711", 1);
    setenv("PMI_GNI_PTAG", "17:17", 1);
    assert_int_equal(alps_app_lli_put_request(99, NULL, 0), ALPS_APP_LLI_ALPS_STAT_FAILED);
    assert_int_equal(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0), 0);
    assert_int_equal(alps_app_lli_get_response(&status, &len), 0);
    assert_int_equal(len, sizeof(apid));
    assert_int_equal(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_GNI, NULL, 0), 0);
    assert_int_equal(alps_app_lli_get_response(&status, &len), 0);
    assert_int_equal(len, sizeof(gni));
    assert_int_equal(alps_app_lli_get_response_bytes(&gni, len), 0);
    assert_int_equal(gni.u.buf[0].cookie, 4711);
    assert_int_equal(gni.u.buf[0].ptag, 17);
}

static void test_alps_layout_is_that_of_the_ranks(void **state)
{
    (void)state;
    alpsAppLayout_t l;
    int *list = (int *)1;
    setenv("WEFT_SIZE", "7", 1);
    setenv("WEFT_PPN", "3", 1);
    setenv("WEFT_RANK", "6", 1);
    assert_int_equal(
        alps_get_placement_info(1, &l, &list, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), 1);
    assert_null(list);
    assert_int_equal(l.firstPe, 6);
    assert_int_equal(l.numPesHere, 1);
    assert_int_equal(l.numNodes, 3);
}

static int registered;

static void *reg(void *addr, uint64_t len, void *context)
{
    (void)len, (void)context;
    registered++;
    return addr;
}

static uint32_t dereg(void *registration, void *context)
{
    (void)registration, (void)context;
    registered--;
    return 0;
}

static void test_udreg_finds_regions_again_and_gives_up_unused_ones(void **state)
{
    (void)state;
    udreg_cache_attr_t a = {.cache_name = "test",
                            .max_entries = 2,
                            .modes = UDREG_CC_MODE_USE_LAZY_DEREG,
                            .device_reg_func = reg,
                            .device_dereg_func = dereg};
    udreg_cache_handle_t c;
    udreg_entry_t *big, *part, *other, *third;
    char memory[4096];
    char name[] = "test", none[] = "none";
    assert_int_equal(UDREG_CacheCreate(&a), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheCreate(&a), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_CacheAccess(none, &c), UDREG_RC_NO_MATCH);
    assert_int_equal(UDREG_CacheAccess(name, &c), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_Register(c, memory, 1000, &big), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_Register(c, memory + 10, 900, &part), UDREG_RC_SUCCESS);
    assert_ptr_equal(big, part);
    assert_ptr_equal(big->device_data, memory);
    assert_int_equal(UDREG_Register(c, memory + 2000, 8, &other), UDREG_RC_SUCCESS);
    assert_int_equal(registered, 2);
    assert_int_equal(UDREG_Register(c, memory + 3000, 8, &third), UDREG_RC_NO_SPACE);
    assert_int_equal(UDREG_Unregister(c, other), UDREG_RC_SUCCESS);
    assert_int_equal(registered, 2); // kept
    assert_int_equal(UDREG_Unregister(c, other), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Register(c, memory + 3000, 8, &third), UDREG_RC_SUCCESS);
    assert_int_equal(registered, 2); // in its place
    assert_int_equal(UDREG_CacheDestroy(c), UDREG_RC_CACHE_IN_USE);
    assert_int_equal(UDREG_CacheRelease(c), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheDestroy(c), UDREG_RC_SUCCESS);
    assert_int_equal(registered, 0);
    assert_int_equal(UDREG_CacheDestroy(c), UDREG_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alps_credentials_are_those_of_the_environment),
        cmocka_unit_test(test_alps_layout_is_that_of_the_ranks),
        cmocka_unit_test(test_udreg_finds_regions_again_and_gives_up_unused_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
