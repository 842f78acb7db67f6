// SPDX-License-Identifier: BSD-2-Clause
// Two processes on one host: each test forks a peer, which answers over a pipe. Every test runs
// with cross-process copies and once more with all data in messages.
#include "ugni/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WANT(code, call) fixture_expect(GNI_RC_##code, call, #call, __LINE__)
#define BIG              300000u // more than a ring of messages holds

// What the peer tells of itself.
struct card {
    uint32_t pe;
    uint64_t memory;
    gni_mem_handle_t handle;
};

struct pair {
    pid_t pid;
    int to, from; // pipes to and from the peer
    struct card card;
    struct fixture f;
    gni_ep_handle_t ep; // bound to the peer
    char *big;
    gni_mem_handle_t big_handle;
};

// ---- the peer: registers memory and obeys one-letter orders
// --------------------------------------

static void serve_smsg(struct fixture *f, gni_ep_handle_t ep, int n)
{
    void *m;
    for (int i = 0; i < n;) {
        uint8_t tag = GNI_SMSG_ANY_TAG;
        if (GNI_SmsgGetNextWTag(ep, &m, &tag) != GNI_RC_SUCCESS)
            continue;
        char copy[64];
        gni_cq_entry_t e;
        memcpy(copy, m, sizeof(copy));
        GNI_SmsgRelease(ep);
        while (GNI_SmsgSendWTag(ep, copy, sizeof(copy), NULL, 0, 0, tag) == GNI_RC_NOT_DONE)
            ;
        while (GNI_CqGetEvent(f->source, &e) == GNI_RC_SUCCESS)
            ;
        i++;
    }
}

static void obey(struct fixture *f, char *big, int in, int out)
{
    gni_ep_handle_t ep = NULL;
    struct card parent;
    char order, done = 'k';
    gni_smsg_attr_t mine, theirs;
    while (read(in, &order, 1) == 1) {
        switch (order) {
        case 's': // sleep without a call until the next order
            break;
        case 'b':
            if (read(in, &parent, sizeof(parent)) != sizeof(parent))
                _exit(1);
            GNI_EpCreate(f->nic, f->source, &ep);
            GNI_EpBind(ep, parent.pe, 1);
            break;
        case 'm': // short messages: echo 1000
            if (read(in, &theirs, sizeof(theirs)) != sizeof(theirs))
                _exit(1);
            mine = theirs;
            mine.msg_buffer = f->memory;
            mine.mem_hndl = f->handle;
            GNI_SmsgInit(ep, &mine, &theirs);
            serve_smsg(f, ep, 1000);
            break;
        case 'd': { // datagram
            gni_post_state_t st;
            uint32_t pe, id;
            char got[8] = "";
            GNI_EpPostData(ep, "child", 6, got, 8);
            GNI_EpPostDataWait(ep, UINT32_MAX, &st, &pe, &id);
            done = strcmp(got, "parent") == 0 ? 'k' : 'x';
            break;
        }
        case 'c': // sum of the big buffer
            for (unsigned i = 0; i < BIG; i++)
                if (big[i] != (char)(i * 7))
                    done = 'x';
            break;
        }
        if (write(out, &done, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static void be_peer(int in, int out)
{
    struct fixture f;
    char *big = aligned_alloc(4096, (BIG + 4095) & ~4095u);
    gni_mem_handle_t h;
    memset(big, 0, BIG);
    fixture_open(&f, 2, GNI_CDM_MODE_CACHED_AMO_ENABLED, GNI_CQ_BLOCKING);
    WANT(SUCCESS, GNI_MemRegister(f.nic, (uintptr_t)big, BIG, f.remote, 0, UINT32_MAX, &h));
    struct card cards[2] = {{f.pe, (uintptr_t)f.memory, f.handle}, {f.pe, (uintptr_t)big, h}};
    if (write(out, cards, sizeof(cards)) != sizeof(cards))
        _exit(1);
    obey(&f, big, in, out);
}

// ---- the parent ---------------------------------------------------------------------------------

static void order(struct pair *p, char what, const void *data, size_t len)
{
    assert_int_equal(write(p->to, &what, 1), 1);
    if (len)
        assert_int_equal(write(p->to, data, len), len);
}

static void answered(struct pair *p)
{
    char c = 0;
    assert_int_equal(read(p->from, &c, 1), 1);
    assert_int_equal(c, 'k');
}

static struct card big_card;

static void pair_open(struct pair *p)
{
    int down[2], up[2];
    struct card cards[2];
    assert_int_equal(pipe(down) | pipe(up), 0);
    p->pid = fork();
    if (!p->pid) {
        close(down[1]);
        close(up[0]);
        be_peer(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    p->to = down[1];
    p->from = up[0];
    assert_int_equal(read(p->from, cards, sizeof(cards)), sizeof(cards));
    p->card = cards[0];
    big_card = cards[1];
    fixture_open(&p->f, 1, GNI_CDM_MODE_CACHED_AMO_ENABLED, GNI_CQ_BLOCKING);
    WANT(SUCCESS, GNI_EpCreate(p->f.nic, p->f.source, &p->ep));
    WANT(SUCCESS, GNI_EpBind(p->ep, p->card.pe, 2));
    p->big = aligned_alloc(4096, (BIG + 4095) & ~4095u);
    WANT(SUCCESS,
         GNI_MemRegister(p->f.nic, (uintptr_t)p->big, BIG, NULL, 0, UINT32_MAX, &p->big_handle));
    struct card mine = {p->f.pe, (uintptr_t)p->f.memory, p->f.handle};
    order(p, 'b', &mine, sizeof(mine));
    answered(p);
}

static void pair_close(struct pair *p)
{
    close(p->to);
    close(p->from);
    waitpid(p->pid, NULL, 0);
    fixture_close(&p->f);
    free(p->big);
}

static gni_post_descriptor_t to_peer(struct pair *p, gni_post_type_t type, uint64_t local,
                                     uint64_t remote, uint64_t len)
{
    gni_post_descriptor_t d = fixture_post(&p->f, type, local, 0, len);
    d.remote_addr = p->card.memory + remote;
    d.remote_mem_hndl = p->card.handle;
    return d;
}

static void finish(struct pair *p, gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *back;
    WANT(SUCCESS, GNI_GetCompleted(p->f.source, fixture_event(p->f.source, GNI_RC_SUCCESS), &back));
    assert_ptr_equal(back, d);
}

// The peer sits in read(): it is served all the same.
static void put_get_amo(struct pair *p)
{
    gni_post_descriptor_t d = to_peer(p, GNI_POST_FMA_PUT, 0, 16, 24);
    memcpy(p->f.memory, "three times eight bytes", 24);
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    WANT(SUCCESS, GNI_PostFma(p->ep, &d));
    finish(p, &d);
    d = to_peer(p, GNI_POST_RDMA_GET, 512, 16, 24);
    WANT(SUCCESS, GNI_PostRdma(p->ep, &d));
    finish(p, &d);
    assert_memory_equal(p->f.memory + 512, "three times eight bytes", 24);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t old;
        d = to_peer(p, GNI_POST_AMO, 1024, 4096, 8);
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 3;
        WANT(SUCCESS, GNI_PostFma(p->ep, &d));
        finish(p, &d);
        memcpy(&old, p->f.memory + 1024, 8);
        assert_true(old == 3 * i);
    }
    d = to_peer(p, GNI_POST_CQWRITE, 0, 0, 0);
    WANT(SUCCESS, GNI_PostCqWrite(p->ep, &d));
    finish(p, &d);
}

static void big_both_ways(struct pair *p)
{
    gni_post_descriptor_t d = to_peer(p, GNI_POST_RDMA_PUT, 0, 0, BIG);
    for (unsigned i = 0; i < BIG; i++)
        p->big[i] = (char)(i * 7);
    d.local_addr = (uintptr_t)p->big;
    d.local_mem_hndl = p->big_handle;
    d.remote_addr = big_card.memory;
    d.remote_mem_hndl = big_card.handle;
    WANT(SUCCESS, GNI_PostRdma(p->ep, &d));
    finish(p, &d);
    order(p, 'c', NULL, 0);
    answered(p);
    memset(p->big, 0, BIG);
    d.type = GNI_POST_RDMA_GET;
    WANT(SUCCESS, GNI_PostRdma(p->ep, &d));
    finish(p, &d);
    for (unsigned i = 0; i < BIG; i++)
        assert_int_equal(p->big[i], (char)(i * 7));
}

static void refused_by_the_peer(struct pair *p)
{
    gni_post_descriptor_t d = to_peer(p, GNI_POST_FMA_PUT, 0, FIXTURE_BYTES, 8), *back;
    gni_cq_entry_t e;
    WANT(SUCCESS, GNI_PostFma(p->ep, &d));
    e = fixture_event(p->f.source, GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gni_cq_get_status(e), 9);
    WANT(TRANSACTION_ERROR, GNI_GetCompleted(p->f.source, e, &back));
    d = to_peer(p, GNI_POST_AMO, 0, FIXTURE_BYTES, 8);
    d.amo_cmd = GNI_FMA_ATOMIC_ADD;
    WANT(SUCCESS, GNI_PostFma(p->ep, &d));
    e = fixture_event(p->f.source, GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gni_cq_get_status(e), 9);
    WANT(TRANSACTION_ERROR, GNI_GetCompleted(p->f.source, e, &back));
}

static void smsg_echo(struct pair *p)
{
    gni_smsg_attr_t mine = {.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                            .msg_buffer = p->f.memory,
                            .mem_hndl = p->f.handle,
                            .mbox_offset = 32768,
                            .mbox_maxcredit = 8,
                            .msg_maxsize = 64},
                    theirs = mine;
    WANT(SUCCESS, GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
    theirs.msg_buffer = (void *)(uintptr_t)p->card.memory;
    theirs.mem_hndl = p->card.handle;
    theirs.buff_size = mine.buff_size;
    WANT(SUCCESS, GNI_SmsgInit(p->ep, &mine, &theirs));
    order(p, 'm', &mine, sizeof(mine));
    for (uint32_t sent = 0, got = 0; got < 1000;) {
        char text[64] = "";
        uint8_t tag = GNI_SMSG_ANY_TAG;
        gni_cq_entry_t e;
        void *m;
        memcpy(text, &sent, sizeof(sent));
        if (sent < 1000 && GNI_SmsgSendWTag(p->ep, text, 40, text + 40, 24, sent,
                                            (uint8_t)(sent % 255)) == GNI_RC_SUCCESS)
            sent++;
        while (GNI_CqGetEvent(p->f.source, &e) == GNI_RC_SUCCESS)
            ;
        while (GNI_CqGetEvent(p->f.remote, &e) != GNI_RC_NOT_DONE)
            ;
        while (GNI_SmsgGetNextWTag(p->ep, &m, &tag) == GNI_RC_SUCCESS) {
            assert_memory_equal(m, &got, sizeof(got));
            assert_int_equal(tag, got % 255);
            WANT(SUCCESS, GNI_SmsgRelease(p->ep));
            tag = GNI_SMSG_ANY_TAG;
            got++;
        }
    }
    answered(p);
}

static void datagram(struct pair *p)
{
    gni_post_state_t st;
    uint32_t pe, id;
    char got[8] = "";
    order(p, 'd', NULL, 0);
    WANT(SUCCESS, GNI_EpPostData(p->ep, "parent", 7, got, 8));
    WANT(SUCCESS, GNI_EpPostDataWait(p->ep, 5000, &st, &pe, &id));
    assert_int_equal(st, GNI_POST_COMPLETED);
    assert_int_equal(pe, p->card.pe);
    assert_int_equal(id, 2);
    assert_string_equal(got, "child");
    answered(p);
}

static void peer_killed(struct pair *p)
{
    gni_post_descriptor_t d = to_peer(p, GNI_POST_AMO, 0, 4096, 8), *back;
    char text[128];
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    kill(p->pid, SIGSTOP); // it answers no more, with an operation under way
    WANT(SUCCESS, GNI_PostFma(p->ep, &d));
    kill(p->pid, SIGKILL);
    gni_cq_entry_t e = fixture_event(p->f.source, GNI_RC_TRANSACTION_ERROR);
    WANT(SUCCESS, GNI_CqErrorStr(e, text, sizeof(text)));
    assert_non_null(strstr(text, "peer process died"));
    WANT(TRANSACTION_ERROR, GNI_GetCompleted(p->f.source, e, &back));
    WANT(SUCCESS, GNI_SmsgSend(p->ep, "x", 1, NULL, 0, 5)); // and so do later ones
    e = fixture_event(p->f.source, GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gni_cq_get_msg_id(e), 5);
    void *m;
    WANT(INVALID_STATE, GNI_SmsgGetNext(p->ep, &m));
    WANT(SUCCESS, GNI_EpUnbind(p->ep));
}

static void run(const char *no_cma)
{
    struct pair p;
    setenv("WEFT_GNI_NO_CMA", no_cma, 1);
    pair_open(&p);
    put_get_amo(&p);
    big_both_ways(&p);
    refused_by_the_peer(&p);
    datagram(&p);
    smsg_echo(&p);
    peer_killed(&p);
    pair_close(&p);
}

static void test_two_processes_with_cross_process_copies(void **state)
{
    (void)state;
    run("0");
}

static void test_two_processes_with_messages_only(void **state)
{
    (void)state;
    run("1");
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    puts("skip: the thread sanitizer cannot follow fork() of a program with threads");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes_with_cross_process_copies),
        cmocka_unit_test(test_two_processes_with_messages_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
