// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/weft-cli-XXXXXX";
static char path[PATH_MAX], detail[PATH_MAX];

static char *make(const char *name, const void *data, size_t len, mode_t mode)
{
    static char file[PATH_MAX];
    snprintf(file, sizeof(file), "%s/%s", dir, name);
    int fd = open(file, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return file;
}

static void test_program_missing_is_said(void **state)
{
    assert_int_equal(cli_program_check("/nonexistent/x", path, detail), CLI_PROGRAM_MISSING);
    assert_int_equal(cli_program_check("no-such-program-here", path, detail), CLI_PROGRAM_MISSING);
}

static void test_program_in_path_is_found(void **state)
{
    assert_int_equal(cli_program_check("sh", path, detail), CLI_PROGRAM_OK);
    assert_true(path[0] == '/');
}

static void test_folder_or_plain_file_is_not_executable(void **state)
{
    assert_int_equal(cli_program_check("/tmp", path, detail), CLI_PROGRAM_NOT_EXECUTABLE);
    assert_int_equal(cli_program_check(make("plain", "x", 1, 0644), path, detail),
                     CLI_PROGRAM_NOT_EXECUTABLE);
}

static Elf64_Ehdr header(uint8_t class, uint16_t machine)
{
    Elf64_Ehdr eh = {.e_machine = machine, .e_phentsize = sizeof(Elf64_Phdr)};
    memcpy(eh.e_ident, ELFMAG, SELFMAG);
    eh.e_ident[EI_CLASS] = class;
    eh.e_phoff = sizeof(eh);
    return eh;
}

static void test_elf_without_loader_is_static(void **state)
{
    Elf64_Ehdr eh = header(ELFCLASS64, EM_X86_64);
#ifdef __aarch64__
    eh.e_machine = EM_AARCH64;
#endif
    assert_int_equal(cli_program_check(make("static", &eh, sizeof(eh), 0755), path, detail),
                     CLI_PROGRAM_STATIC);
    eh.e_phnum = 1000; // program headers that the file does not have
    assert_int_equal(cli_program_check(make("static", &eh, sizeof(eh), 0755), path, detail),
                     CLI_PROGRAM_STATIC);
}

static void test_elf_of_other_machine_is_refused(void **state)
{
    Elf64_Ehdr eh = header(ELFCLASS32, EM_386);
    assert_int_equal(cli_program_check(make("elf32", &eh, sizeof(eh), 0755), path, detail),
                     CLI_PROGRAM_OTHER_MACHINE);
    eh = header(ELFCLASS64, EM_S390);
    assert_int_equal(cli_program_check(make("s390", &eh, sizeof(eh), 0755), path, detail),
                     CLI_PROGRAM_OTHER_MACHINE);
}

static void test_script_is_judged_by_interpreter(void **state)
{
    char text[PATH_MAX + 8];
    assert_int_equal(cli_program_check(make("ok", "#! /bin/sh -e\n", 14, 0755), path, detail),
                     CLI_PROGRAM_OK);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(cli_program_check(make("lost", "#!/no/sh\n", 9, 0755), path, detail),
                     CLI_PROGRAM_MISSING);
    // A script that is its own interpreter ends all the same.
    int n = snprintf(text, sizeof(text), "#!%s/loop\n", dir);
    cli_program_check(make("loop", text, (size_t)n, 0755), path, detail);
}

static void test_setgid_program_is_privileged(void **state)
{
    char *file = make("setgid", "x", 1, 0755);
    if (geteuid() != 0 || chown(file, 0, 65534) != 0 || chmod(file, 02755) != 0)
        skip();
    assert_int_equal(cli_program_check(file, path, detail), CLI_PROGRAM_PRIVILEGED);
    assert_string_equal(detail, "is set-group-ID");
}

static int set_up(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"plain", "static", "elf32", "s390",
                                        "ok",    "lost",   "loop",  "setgid"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char file[PATH_MAX];
        snprintf(file, sizeof(file), "%s/%s", dir, names[i]);
        unlink(file);
    }
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_missing_is_said),
        cmocka_unit_test(test_program_in_path_is_found),
        cmocka_unit_test(test_folder_or_plain_file_is_not_executable),
        cmocka_unit_test(test_elf_without_loader_is_static),
        cmocka_unit_test(test_elf_of_other_machine_is_refused),
        cmocka_unit_test(test_script_is_judged_by_interpreter),
        cmocka_unit_test(test_setgid_program_is_privileged),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
