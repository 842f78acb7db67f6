// SPDX-License-Identifier: BSD-2-Clause
#include "base/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint8_t *page_and_hole(void)
{
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    memset(p, 7, 4096);
    return p;
}

static void test_copy_from_and_to_a_hole_is_refused_each_time(void **state)
{
    wf_guard_install();
    uint8_t *p = page_and_hole(), buf[64] = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wf_guard_copy(buf, p + 4064, 64), -EFAULT);
        assert_int_equal(wf_guard_copy(p + 4096, buf, 64), -EFAULT);
        assert_int_equal(wf_guard_copy(buf, p, 64), 0);
        assert_int_equal(buf[63], 7);
    }
    munmap(p, 4096);
}

static void test_copy_to_read_only_memory_is_refused(void **state)
{
    wf_guard_install();
    uint8_t *p = page_and_hole(), buf[8] = {0};
    mprotect(p, 4096, PROT_READ);
    assert_int_equal(wf_guard_copy(p, buf, 8), -EFAULT);
    munmap(p, 4096);
}

static void run_nested(void *arg)
{
    uint8_t *p = arg, buf[8];
    assert_int_equal(wf_guard_copy(buf, p + 4096, 8), -EFAULT);
    *(volatile uint8_t *)(p + 4096) = 1;
}

static void test_guards_nest(void **state)
{
    wf_guard_install();
    uint8_t *p = page_and_hole();
    assert_int_equal(wf_guard_run(run_nested, p), -EFAULT);
    munmap(p, 4096);
}

static int status_of_child(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        fn();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void fault_outside(void)
{
    signal(SIGSEGV, SIG_DFL);
    wf_guard_install();
    *(volatile uint8_t *)(page_and_hole() + 4096) = 1;
}

static void exit_42(int sig)
{
    _exit(42);
}

static void fault_with_handler_of_the_program(void)
{
    signal(SIGSEGV, exit_42);
    wf_guard_install();
    wf_guard_install();
    *(volatile uint8_t *)(page_and_hole() + 4096) = 1;
}

static void killed_from_outside(void)
{
    signal(SIGSEGV, SIG_DFL);
    wf_guard_install();
    kill(getpid(), SIGSEGV);
}

static void test_fault_outside_goes_where_it_went_before(void **state)
{
    int status = status_of_child(fault_outside);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = status_of_child(killed_from_outside);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = status_of_child(fault_with_handler_of_the_program);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_from_and_to_a_hole_is_refused_each_time),
        cmocka_unit_test(test_copy_to_read_only_memory_is_refused),
        cmocka_unit_test(test_guards_nest),
        cmocka_unit_test(test_fault_outside_goes_where_it_went_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
