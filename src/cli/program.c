// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "which ELF machine is this?"
#endif

#define MAX_INTERPRETERS 4

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

// As execvp(): a name with a slash is a path, others are looked for in PATH.
static enum cli_program_fault find(const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s", name);
    if (strchr(name, '/')) {
        if (access(path, F_OK) != 0)
            return CLI_PROGRAM_MISSING;
        return is_program(path) ? CLI_PROGRAM_OK : CLI_PROGRAM_NOT_EXECUTABLE;
    }
    const char *dirs = getenv("PATH");
    if (!dirs)
        dirs = "/bin:/usr/bin";
    for (const char *d = dirs;; d = strchr(d, ':') + 1) {
        size_t n = strcspn(d, ":");
        int len = snprintf(path, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? d : ".", name);
        if (len < PATH_MAX && is_program(path))
            return CLI_PROGRAM_OK;
        if (!d[n])
            break;
    }
    snprintf(path, PATH_MAX, "%s", name);
    return CLI_PROGRAM_MISSING;
}

// The loader ignores LD_LIBRARY_PATH and LD_PRELOAD when the kernel raises privileges at exec.
static bool is_privileged(const char *path, char detail[PATH_MAX])
{
    struct stat st;
    char caps[64];
    if (stat(path, &st) != 0)
        return false;
    if ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) {
        strcpy(detail, "is set-user-ID");
        return true;
    }
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()) {
        strcpy(detail, "is set-group-ID");
        return true;
    }
    if (getuid() != 0 && getxattr(path, "security.capability", caps, sizeof(caps)) > 0) {
        strcpy(detail, "has file capabilities");
        return true;
    }
    return false;
}

// Does the program name a loader (PT_INTERP)? Those that do not are statically linked.
static bool has_loader(int fd, const Elf64_Ehdr *eh)
{
    for (unsigned i = 0; i < eh->e_phnum; i++) {
        Elf64_Phdr ph;
        off_t at = (off_t)(eh->e_phoff + (uint64_t)i * eh->e_phentsize);
        if (pread(fd, &ph, sizeof(ph), at) != (ssize_t)sizeof(ph))
            return false;
        if (ph.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static enum cli_program_fault check_elf(int fd, char detail[PATH_MAX])
{
    Elf64_Ehdr eh;
    memset(&eh, 0, sizeof(eh));
    ssize_t n = pread(fd, &eh, sizeof(eh), 0);
    if (n < EI_NIDENT || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
        return CLI_PROGRAM_OK; // text without "#!": execvp() gives it to the shell
    if (eh.e_ident[EI_CLASS] != ELFCLASS64) {
        strcpy(detail, "is a 32-bit program; Weft's libraries are 64-bit");
        return CLI_PROGRAM_OTHER_MACHINE;
    }
    if (n != (ssize_t)sizeof(eh) || eh.e_machine != OUR_MACHINE) {
        strcpy(detail, "is built for another processor");
        return CLI_PROGRAM_OTHER_MACHINE;
    }
    return has_loader(fd, &eh) ? CLI_PROGRAM_OK : CLI_PROGRAM_STATIC;
}

// The interpreter of a script, or false.
static bool script_interpreter(int fd, char path[PATH_MAX])
{
    char head[256];
    ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return false;
    head[n] = 0;
    char *p = head + 2 + strspn(head + 2, " \t");
    p[strcspn(p, " \t\r\n")] = 0;
    snprintf(path, PATH_MAX, "%s", p);
    return *p == '/';
}

enum cli_program_fault cli_program_check(const char *name, char path[PATH_MAX],
                                         char detail[PATH_MAX])
{
    detail[0] = 0;
    enum cli_program_fault fault = find(name, path);
    for (int depth = 0; fault == CLI_PROGRAM_OK && depth < MAX_INTERPRETERS; depth++) {
        // Set-ID bits of a script do nothing; those of its interpreter count.
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        char interpreter[PATH_MAX];
        bool script = fd >= 0 && script_interpreter(fd, interpreter);
        if (!script && is_privileged(path, detail))
            fault = CLI_PROGRAM_PRIVILEGED;
        else if (!script && fd >= 0) // unreadable: the kernel may run it all the same
            fault = check_elf(fd, detail);
        if (fd >= 0)
            close(fd);
        if (!script)
            break;
        strcpy(path, interpreter);
        if (!is_program(path))
            fault = CLI_PROGRAM_MISSING;
    }
    return fault;
}
