// SPDX-License-Identifier: BSD-2-Clause
// Exports a stub under a name and version: WF_STUB(answer, ibv_foo, "@", "IBVERBS_1.0") makes
// ibv_foo@IBVERBS_1.0 another name of the function answer(). "@@" is the version that links get.
#ifndef WF_VERBS_STUB_H
#define WF_VERBS_STUB_H

#define WF_STUB(answer, name, at, version)                                                         \
    __asm__(".globl wf_stub." #name "." version "\n"                                               \
            ".type wf_stub." #name "." version ", %function\n"                                     \
            ".set wf_stub." #name "." version ", " #answer "\n"                                    \
            ".symver wf_stub." #name "." version ", " #name at version "\n");

// The same for data of `size` bytes that is defined under its own name in the file.
#define WF_STUB_DATA(name, size, at, version)                                                      \
    __asm__(".globl wf_stub." #name "." version "\n"                                               \
            ".type wf_stub." #name "." version ", %object\n"                                       \
            ".size wf_stub." #name "." version ", " #size "\n"                                     \
            ".set wf_stub." #name "." version ", " #name "\n"                                      \
            ".symver wf_stub." #name "." version ", " #name at version "\n");

#endif
