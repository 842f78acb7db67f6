/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uGNI: the user-level interface of Cray's Gemini and Aries networks, provided by Weft on any Linux
 * host. Link with -lugni. docs/ugni.md tells what each call does here, with every return code.
 *
 * The interface is that of revision 0x5d, with the two calls and the spelling that 0x5c had and
 * 0x5d dropped. Programs that must see the sizes and counts of 0x5c define WEFT_GNI_API as 0x5c
 * before they include this file; the library serves both.
 *
 * Unless a comment says otherwise: calls return GNI_RC_SUCCESS or the code of what is wrong, write
 * their results only on success, may be made from any thread, and only those with "Wait" or
 * "Monitor" in their names block. GNI_RC_INVALID_PARAM answers a bad handle (freed ones included)
 * and a null pointer.
 */
#ifndef GNI_PUB_H
#define GNI_PUB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_GNI_API
#define WEFT_GNI_API 0x5d
#endif

/* ---- version -------------------------------------------------------------------------- */

#define GNI_MAJOR_REV 0x00 /* generation of the stack */
#if WEFT_GNI_API < 0x5d
#define GNI_MINOR_REV 0x5c   /* revision of the interface */
#define GNI_CODE_REV  0x0000 /* build of the library */
#else
#define GNI_MINOR_REV 0x5d
#define GNI_CODE_REV  0x0102
#endif

#define GNI_GET_MAJOR(value)              (((value) >> 24) & 0xff)
#define GNI_GET_MINOR(value)              (((value) >> 16) & 0xff)
#define GNI_GET_REV(value)                ((value)&0xffff)
#define GNI_VERSION                       ((GNI_MAJOR_REV << 24) | (GNI_MINOR_REV << 16) | GNI_CODE_REV)
#define GNI_VERSION_CHECK(maj, min, code) (((maj) << 24) | ((min) << 16) | (code))

/* Compare with what GNI_GetVersion() says. */
#define GNI_VERSION_FMA_SHARING            0x5b0000
#define GNI_VERSION_FMA_CHAIN_TRANSACTIONS 0x5d0000

/* Direction of a parameter; for the reader only. */
#define IN
#define OUT
#define INOUT

/* ---- protection tags, keys, cookies --------------------------------------------------- */

/* Two domains can talk when tag and cookie are equal. */
enum {
    GNI_PTAG_LND = 1,
    GNI_PTAG_OFED = 2,
    GNI_PTAG_USER_START = 3, /* first tag of user jobs */
    GNI_PTAG_LND_KNC = 128,
    GNI_PTAG_USER_END = 253, /* last tag of user jobs */
    GNI_PTAG_HSNBOOT = 254,
    GNI_PTAG_MAX = 254,
    GNI_PTAG_LB = 255, /* loop-back tag, doubles as "find and allocate" request */
};
#define GNI_FIND_ALLOC_PTAG 0xff /* let the library choose: the tag that belongs to the cookie */

enum {
    GNI_PKEY_INVALID = 0,
    GNI_PKEY_LND = 1,
    GNI_PKEY_OFED = 2,
    GNI_PKEY_USER_START = 128,
    GNI_PKEY_USER_END = 65407,
    GNI_PKEY_HSNBOOT = 65408,
    GNI_PKEY_MAX = 65534,
    GNI_PKEY_LB = 65535,
};

#define GNI_COOKIE_PKEY_MASK      0xffff
#define GNI_COOKIE_PKEY_SHIFT     16
#define GNI_COOKIE_CBPS_MDD_MASK  0x7
#define GNI_COOKIE_CBPS_MDD_SHIFT 3
#define GNI_JOB_CREATE_COOKIE(pkey, cbps_mdd)                                                      \
    (((uint32_t)(pkey) << GNI_COOKIE_PKEY_SHIFT) |                                                 \
     (((cbps_mdd)&GNI_COOKIE_CBPS_MDD_MASK) << GNI_COOKIE_CBPS_MDD_SHIFT))

/* ---- handles -------------------------------------------------------------------------- */

typedef struct gni_nic *gni_nic_handle_t;
typedef struct gni_cdm *gni_cdm_handle_t;
typedef struct gni_ep *gni_ep_handle_t;
typedef struct gni_cq *gni_cq_handle_t;
typedef struct gni_err *gni_err_handle_t;
typedef struct gni_msgq *gni_msgq_handle_t;
typedef struct gni_ce *gni_ce_handle_t;
typedef struct gni_comp_chan *gni_comp_chan_handle_t;

/* Registered memory: plain bytes, to be copied, sent and compared. */
typedef struct gni_mem_handle {
    uint64_t qword1;
    uint64_t qword2;
} gni_mem_handle_t;

typedef enum gni_mem_handle_attr {
    GNI_MEMHNDL_ATTR_READONLY = 1,
    GNI_MEMHNDL_ATTR_VMDH = 2,
    GNI_MEMHNDL_ATTR_MRT = 3,
    GNI_MEMHNDL_ATTR_GART = 4,
    GNI_MEMHNDL_ATTR_IOMMU = 5,
    GNI_MEMHNDL_ATTR_PCI_IOMMU = 6,
    GNI_MEMHNDL_ATTR_CLONE = 7,
} gni_mem_handle_attr_t;

/* ---- return codes --------------------------------------------------------------------- */

typedef enum gni_return {
    GNI_RC_SUCCESS = 0,
    GNI_RC_NOT_DONE = 1,
    GNI_RC_INVALID_PARAM = 2,
    GNI_RC_ERROR_RESOURCE = 3,
    GNI_RC_TIMEOUT = 4,
    GNI_RC_PERMISSION_ERROR = 5,
    GNI_RC_DESCRIPTOR_ERROR = 6,
    GNI_RC_ALIGNMENT_ERROR = 7,
    GNI_RC_INVALID_STATE = 8,
    GNI_RC_NO_MATCH = 9,
    GNI_RC_SIZE_ERROR = 10,
    GNI_RC_TRANSACTION_ERROR = 11,
    GNI_RC_ILLEGAL_OP = 12,
    GNI_RC_ERROR_NOMEM = 13,
} gni_return_t;

/* Names of the codes, indexed by code. */
extern const char *gni_err_str[];

/* ---- communication domains ------------------------------------------------------------ */

/* What happens to registered pages in a child after fork(). Nothing is pinned here: no difference.
 */
#define GNI_CDM_MODE_FORK_NOCOPY   0x00000001 /* fork treatment of registered pages: none copied */
#define GNI_CDM_MODE_FORK_FULLCOPY 0x00000002 /* fork treatment of registered pages: all copied */
#define GNI_CDM_MODE_FORK_PARTCOPY 0x00000004 /* default fork treatment */
/* Errors. Weft never kills a process, with either of these. */
#define GNI_CDM_MODE_ERR_NO_KILL        0x00000008 /* report errors, never kill the process */
#define GNI_CDM_MODE_ERR_ALL_KILL       0x00000010 /* kill on every transaction error */
#define GNI_CDM_MODE_FAST_DATAGRAM_POLL 0x00000020 /* poll datagram state without a system call */
#define GNI_CDM_MODE_BTE_SINGLE_CHANNEL                                                            \
    0x00000040 /* RDMA posts go through one channel; precondition for the fence */
#define GNI_CDM_MODE_USE_PCI_IOMMU 0x00000080
#define GNI_CDM_MODE_MDD_DEDICATED 0x00000100
#define GNI_CDM_MODE_MDD_SHARED    0x00000200
#define GNI_CDM_MODE_DUAL_EVENTS                                                                   \
    0x00001000 /* permits local+global events on one post; halves request slots per CQ */
#define GNI_CDM_MODE_DLA_ENABLE_FORWARDING  0x00004000
#define GNI_CDM_MODE_DLA_DISABLE_FORWARDING 0x00008000
#define GNI_CDM_MODE_FMA_DEDICATED          0x00010000 /* own FMA descriptor (default) */
#define GNI_CDM_MODE_FMA_SHARED                                                                    \
    0x00020000 /* FMA descriptor shared between CDMs of a protection domain */
#define GNI_CDM_MODE_CACHED_AMO_ENABLED     0x00040000 /* permits the cached AMO codes */
#define GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT 0x00080000 /* CQ memory near the NIC */
#define GNI_CDM_MODE_FLBTE_DISABLE          0x00100000 /* no fast BTE launch */
#define GNI_CDM_MODE_FMA_SMALL_WINDOW       0x00200000 /* maps only a small FMA window */
#define GNI_CDM_MODE_MASK                   0x0fffffff /* bits a caller may use */
#define GNI_CDM_MODE_PRIV_RESERVED_1        0x10000000
#define GNI_CDM_MODE_PRIV_RESERVED_2        0x20000000
#define GNI_CDM_MODE_PRIV_RESERVED_3        0x40000000
#define GNI_CDM_MODE_PRIV_RESERVED_4        0x80000000
#define GNI_CDM_MODE_PRIV_MASK              0xf0000000 /* bits private to the libraries */

/* ---- datagrams ------------------------------------------------------------------------ */

#define GNI_DATAGRAM_MAXSIZE 128 /* bytes, each way */

typedef enum gni_post_state {
    GNI_POST_PENDING = 0,     /* datagram not matched yet */
    GNI_POST_COMPLETED = 1,   /* exchange done */
    GNI_POST_ERROR = 2,       /* exchange failed */
    GNI_POST_TIMEOUT = 3,     /* gave up */
    GNI_POST_TERMINATED = 4,  /* cancelled by either side */
    GNI_POST_REMOTE_DATA = 5, /* peer data waits, nothing posted locally */
} gni_post_state_t;

/* ---- memory registration -------------------------------------------------------------- */

#define GNI_MEM_READWRITE           0x00000000
#define GNI_MEM_READ_ONLY           0x00000001 /* peer may read only */
#define GNI_MEM_USE_VMDH            0x00000002 /* handle taken from the block set up by SetMddResources */
#define GNI_MEM_USE_GART            0x00000004 /* Gemini translation choice */
#define GNI_MEM_PHYS_CONT           0x00000008 /* kernel: no translation needed */
#define GNI_MEM_PHYS_SEGMENTS       0x00000010 /* kernel: 4 KiB physical segments */
#define GNI_MEM_STRICT_PI_ORDERING  0x00000020 /* ordered writes into host memory */
#define GNI_MEM_PI_FLUSH            0x00000040 /* flush host bus before replying */
#define GNI_MEM_MDD_CLONE           0x00000080
#define GNI_MEM_RELAXED_PI_ORDERING 0x00000100 /* writes may be reordered; strict flag wins */
#define GNI_MEM_RESERVE_REGION      0x00000200 /* reserve translation range only */
#define GNI_MEM_UPDATE_REGION       0x00000400 /* fill a reserved range in */
#define GNI_MEM_MDD_SHARED          0x00000800
#define GNI_MEM_MDD_DEDICATED       0x00001000
#define GNI_MEM_PRIV_RESERVED_1     0x00100000
#define GNI_MEM_PRIV_RESERVED_2     0x00200000
#define GNI_MEM_PRIV_RESERVED_3     0x00400000
#define GNI_MEM_PRIV_RESERVED_4     0x00800000
#define GNI_MEM_PRIV_MASK           0x00f00000
#define GNI_MEM_CUDA                0x01000000 /* GPU memory */
#define GNI_EXMEM_FLAGS(flag)       ((flag) >> 24)
#define GNI_MEM_IS_EXTERNAL(flag)   (GNI_EXMEM_FLAGS(flag))

typedef struct gni_mem_segment {
    uint64_t address;
    uint64_t length;
} gni_mem_segment_t;

/* ---- completion queues ---------------------------------------------------------------- */

typedef uint32_t gni_cq_mode_t;

#define GNI_CQ_NOBLOCK          0x00000000 /* polling queue */
#define GNI_CQ_BLOCKING         0x00000001 /* wait calls allowed */
#define GNI_CQ_EMULATED         0x00000002 /* internal */
#define GNI_CQ_EMULATED_INVALID (GNI_CQ_EMULATED | GNI_CQ_BLOCKING)
#define GNI_CQ_PHYS_PAGES       0x00000004 /* backed by physical pages */
#define GNI_CQ_UNMANAGED        0x00000008 /* sink nobody reads; never overruns */
#define GNI_CQ_NOAUTOFILL       0x00000010 /* undocumented */

#define GNI_CQ_IS_NON_BLOCKING(modes) (((modes)&GNI_CQ_BLOCKING) == GNI_CQ_NOBLOCK)
#define GNI_CQ_IS_BLOCKING(modes)     (((modes)&GNI_CQ_BLOCKING) == GNI_CQ_BLOCKING)
#define GNI_CQ_IS_EMULATED(modes)     (((modes)&GNI_CQ_EMULATED) == GNI_CQ_EMULATED)
#define GNI_CQ_IS_NOT_EMULATED(modes) (((modes)&GNI_CQ_EMULATED) == 0)
#define GNI_CQ_IS_INVALID_EMULATED(modes)                                                          \
    (((modes)&GNI_CQ_EMULATED_INVALID) == GNI_CQ_EMULATED_INVALID)
#define GNI_CQ_USE_PHYS_PAGES(modes) (((modes)&GNI_CQ_PHYS_PAGES) == GNI_CQ_PHYS_PAGES)

/* An event. Take it apart with the functions below only. */
typedef uint64_t gni_cq_entry_t;

/* Type of a source-side event, a field of two bits. Remote events carry none. */
#define GNI_CQ_EVENT_TYPE_POST  0x0ULL /* FMA, RDMA, AMO, CQ write, CE */
#define GNI_CQ_EVENT_TYPE_SMSG  0x1ULL /* short message sent */
#define GNI_CQ_EVENT_TYPE_DMAPP 0x2ULL /* another library's */
#define GNI_CQ_EVENT_TYPE_MSGQ  0x3ULL /* shared message queue, message sent */

#ifndef GNI_INLINE_CQ_FUNCTIONS
uint64_t gni_cq_get_data(gni_cq_entry_t);
uint64_t gni_cq_get_source(gni_cq_entry_t);
uint64_t gni_cq_get_status(gni_cq_entry_t);
uint64_t gni_cq_get_info(gni_cq_entry_t);
uint64_t gni_cq_overrun(gni_cq_entry_t);
uint64_t gni_cq_rem_overrun(gni_cq_entry_t);
uint64_t gni_cq_get_inst_id(gni_cq_entry_t);
uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t);
uint64_t gni_cq_get_tid(gni_cq_entry_t);
uint64_t gni_cq_get_msg_id(gni_cq_entry_t);
uint64_t gni_cq_get_type(gni_cq_entry_t);
uint64_t gni_cq_get_block_id(gni_cq_entry_t);
uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t);
uint64_t gni_cq_get_marker_id(gni_cq_entry_t);
uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t);
uint64_t gni_cq_get_ce_id(gni_cq_entry_t);
uint64_t gni_cq_get_reductn_id(gni_cq_entry_t);
uint64_t gni_cq_get_trans_type(gni_cq_entry_t);
void gni_cq_set_inst_id(gni_cq_entry_t *, uint64_t);
void gni_cq_set_rem_inst_id(gni_cq_entry_t *, uint64_t);
void gni_cq_set_tid(gni_cq_entry_t *, uint64_t);
void gni_cq_set_msg_id(gni_cq_entry_t *, uint64_t);
void gni_cq_set_type(gni_cq_entry_t *, uint64_t);
void gni_cq_clr_status(gni_cq_entry_t *);
unsigned gni_cq_status_dla_overflow(gni_cq_entry_t);
unsigned gni_cq_bte_enq_status(gni_cq_entry_t);
#endif

#define GNI_CQ_GET_DATA                    gni_cq_get_data /* of a CQ write: its 48 bits */
#define GNI_CQ_GET_SOURCE                  gni_cq_get_source
#define GNI_CQ_GET_STATUS                  gni_cq_get_status /* 0: good */
#define GNI_CQ_GET_INFO                    gni_cq_get_info
#define GNI_CQ_GET_INST_ID                 gni_cq_get_inst_id /* the event value set on the endpoint, 24 bits */
#define GNI_CQ_GET_REM_INST_ID             gni_cq_get_rem_inst_id /* remote events: all 32 bits of it */
#define GNI_CQ_GET_TID                     gni_cq_get_tid
#define GNI_CQ_GET_MSG_ID                  gni_cq_get_msg_id
#define GNI_CQ_GET_TYPE                    gni_cq_get_type
#define GNI_CQ_OVERRUN                     gni_cq_overrun
#define GNI_CQ_REM_OVERRUN                 gni_cq_rem_overrun
#define GNI_CQ_GET_BLOCK_ID                gni_cq_get_block_id
#define GNI_CQ_GET_UNSUCCESSFUL_CNT        gni_cq_get_unsuccessful_cnt
#define GNI_CQ_GET_MARKER_ID               gni_cq_get_marker_id
#define GNI_CQ_GET_FAILED_ENQUEUE_CNT      gni_cq_get_failed_enqueue_cnt
#define GNI_CQ_GET_CE_ID                   gni_cq_get_ce_id
#define GNI_CQ_GET_REDUCTN_ID              gni_cq_get_reductn_id
#define GNI_CQ_GET_TRANS_TYPE              gni_cq_get_trans_type
#define GNI_CQ_SET_INST_ID(entry, val)     gni_cq_set_inst_id(&(entry), val)
#define GNI_CQ_SET_REM_INST_ID(entry, val) gni_cq_set_rem_inst_id(&(entry), val)
#define GNI_CQ_SET_TID(entry, val)         gni_cq_set_tid(&(entry), val)
#define GNI_CQ_SET_MSG_ID(entry, val)      gni_cq_set_msg_id(&(entry), val)
#define GNI_CQ_SET_TYPE(entry, val)        gni_cq_set_type(&(entry), val)
#define GNI_CQ_CLR_STATUS(entry)           gni_cq_clr_status(&(entry))
#define GNI_CQ_STATUS_OK(entry)            (gni_cq_get_status(entry) == 0)
#define GNI_CQ_STATUS_DLA_OVERFLOW(entry)  (gni_cq_status_dla_overflow(entry))
#define GNI_CQ_BTE_ENQ_STATUS(entry)       gni_cq_bte_enq_status(entry)

/* ---- posts ---------------------------------------------------------------------------- */

typedef enum gni_post_type {
    GNI_POST_RDMA_PUT = 1,
    GNI_POST_RDMA_GET = 2,
    GNI_POST_FMA_PUT = 3,
    GNI_POST_FMA_PUT_W_SYNCFLAG = 4,
    GNI_POST_FMA_GET = 5,
    GNI_POST_AMO = 6,
    GNI_POST_CQWRITE = 7,
    GNI_POST_CE = 8,
    GNI_POST_FMA_GET_W_FLAG = 9,
    GNI_POST_AMO_W_FLAG = 10,
} gni_post_type_t;

#define GNI_FMA_FLAGGED_RESPONSE_SIZE                                                              \
    4 /* bytes of the flag behind the data of a flagged GET, AMO */

/*
 * Atomic memory operations. Bits: 0x100 does not fetch, 0x200 works on 32 bits, 0x40 second
 * generation (Aries), and 0x10 (first) or 0x20 (second generation) cached.
 */
typedef enum gni_fma_cmd_type {
    GNI_FMA_ATOMIC_FADD = 0x008,
    GNI_FMA_ATOMIC_FADD_C = 0x018,
    GNI_FMA_ATOMIC_FAND = 0x009,
    GNI_FMA_ATOMIC_FAND_C = 0x019,
    GNI_FMA_ATOMIC_FOR = 0x00a,
    GNI_FMA_ATOMIC_FOR_C = 0x01a,
    GNI_FMA_ATOMIC_FXOR = 0x00b,
    GNI_FMA_ATOMIC_FXOR_C = 0x01b,
    GNI_FMA_ATOMIC_FAX = 0x00c,
    GNI_FMA_ATOMIC_FAX_C = 0x01c,
    GNI_FMA_ATOMIC_CSWAP = 0x00d,
    GNI_FMA_ATOMIC_CSWAP_C = 0x01d,
    GNI_FMA_ATOMIC2_FAND_S = 0x240,
    GNI_FMA_ATOMIC2_FAND = 0x041,
    GNI_FMA_ATOMIC2_FAND_SC = 0x260,
    GNI_FMA_ATOMIC2_FAND_C = 0x061,
    GNI_FMA_ATOMIC2_FOR_S = 0x242,
    GNI_FMA_ATOMIC2_FOR = 0x043,
    GNI_FMA_ATOMIC2_FOR_SC = 0x262,
    GNI_FMA_ATOMIC2_FOR_C = 0x063,
    GNI_FMA_ATOMIC2_FXOR_S = 0x244,
    GNI_FMA_ATOMIC2_FXOR = 0x045,
    GNI_FMA_ATOMIC2_FXOR_SC = 0x264,
    GNI_FMA_ATOMIC2_FXOR_C = 0x065,
    GNI_FMA_ATOMIC2_FSWAP_S = 0x246,
    GNI_FMA_ATOMIC2_FSWAP = 0x047,
    GNI_FMA_ATOMIC2_FSWAP_SC = 0x266,
    GNI_FMA_ATOMIC2_FSWAP_C = 0x067,
    GNI_FMA_ATOMIC2_FAX_S = 0x248,
    GNI_FMA_ATOMIC2_FAX = 0x049,
    GNI_FMA_ATOMIC2_FAX_SC = 0x268,
    GNI_FMA_ATOMIC2_FAX_C = 0x069,
    GNI_FMA_ATOMIC2_FCSWAP_S = 0x24a,
    GNI_FMA_ATOMIC2_FCSWAP = 0x04b,
    GNI_FMA_ATOMIC2_FCSWAP_SC = 0x26a,
    GNI_FMA_ATOMIC2_FCSWAP_C = 0x06b,
    GNI_FMA_ATOMIC2_FIMIN_S = 0x250,
    GNI_FMA_ATOMIC2_FIMIN = 0x051,
    GNI_FMA_ATOMIC2_FIMIN_SC = 0x270,
    GNI_FMA_ATOMIC2_FIMIN_C = 0x071,
    GNI_FMA_ATOMIC2_FIMAX_S = 0x252,
    GNI_FMA_ATOMIC2_FIMAX = 0x053,
    GNI_FMA_ATOMIC2_FIMAX_SC = 0x272,
    GNI_FMA_ATOMIC2_FIMAX_C = 0x073,
    GNI_FMA_ATOMIC2_FIADD_S = 0x254,
    GNI_FMA_ATOMIC2_FIADD = 0x055,
    GNI_FMA_ATOMIC2_FIADD_SC = 0x274,
    GNI_FMA_ATOMIC2_FIADD_C = 0x075,
    GNI_FMA_ATOMIC2_FFPMIN_S = 0x258,
    GNI_FMA_ATOMIC2_FFPMIN = 0x059,
    GNI_FMA_ATOMIC2_FFPMIN_SC = 0x278,
    GNI_FMA_ATOMIC2_FFPMIN_C = 0x079,
    GNI_FMA_ATOMIC2_FFPMAX_S = 0x25a,
    GNI_FMA_ATOMIC2_FFPMAX = 0x05b,
    GNI_FMA_ATOMIC2_FFPMAX_SC = 0x27a,
    GNI_FMA_ATOMIC2_FFPMAX_C = 0x07b,
    GNI_FMA_ATOMIC2_FFPADD_S = 0x25c,
    GNI_FMA_ATOMIC2_FFPADD = 0x05d,
    GNI_FMA_ATOMIC2_FFPADD_SC = 0x27c,
    GNI_FMA_ATOMIC2_FFPADD_C = 0x07d,
    GNI_FMA_ATOMIC_ADD = 0x108,
    GNI_FMA_ATOMIC_ADD_C = 0x118,
    GNI_FMA_ATOMIC_AND = 0x109,
    GNI_FMA_ATOMIC_AND_C = 0x119,
    GNI_FMA_ATOMIC_OR = 0x10a,
    GNI_FMA_ATOMIC_OR_C = 0x11a,
    GNI_FMA_ATOMIC_XOR = 0x10b,
    GNI_FMA_ATOMIC_XOR_C = 0x11b,
    GNI_FMA_ATOMIC_AX = 0x10c,
    GNI_FMA_ATOMIC_AX_C = 0x11c,
    GNI_FMA_ATOMIC2_AND_S = 0x340,
    GNI_FMA_ATOMIC2_AND = 0x141,
    GNI_FMA_ATOMIC2_AND_SC = 0x360,
    GNI_FMA_ATOMIC2_AND_C = 0x161,
    GNI_FMA_ATOMIC2_OR_S = 0x342,
    GNI_FMA_ATOMIC2_OR = 0x143,
    GNI_FMA_ATOMIC2_OR_SC = 0x362,
    GNI_FMA_ATOMIC2_OR_C = 0x163,
    GNI_FMA_ATOMIC2_XOR_S = 0x344,
    GNI_FMA_ATOMIC2_XOR = 0x145,
    GNI_FMA_ATOMIC2_XOR_SC = 0x364,
    GNI_FMA_ATOMIC2_XOR_C = 0x165,
    GNI_FMA_ATOMIC2_SWAP_S = 0x346,
    GNI_FMA_ATOMIC2_SWAP = 0x147,
    GNI_FMA_ATOMIC2_SWAP_SC = 0x366,
    GNI_FMA_ATOMIC2_SWAP_C = 0x167,
    GNI_FMA_ATOMIC2_AX_S = 0x348,
    GNI_FMA_ATOMIC2_AX = 0x149,
    GNI_FMA_ATOMIC2_AX_SC = 0x368,
    GNI_FMA_ATOMIC2_AX_C = 0x169,
    GNI_FMA_ATOMIC2_CSWAP_S = 0x34a,
    GNI_FMA_ATOMIC2_CSWAP = 0x14b,
    GNI_FMA_ATOMIC2_CSWAP_SC = 0x36a,
    GNI_FMA_ATOMIC2_CSWAP_C = 0x16b,
    GNI_FMA_ATOMIC2_IMIN_S = 0x350,
    GNI_FMA_ATOMIC2_IMIN = 0x151,
    GNI_FMA_ATOMIC2_IMIN_SC = 0x370,
    GNI_FMA_ATOMIC2_IMIN_C = 0x171,
    GNI_FMA_ATOMIC2_IMAX_S = 0x352,
    GNI_FMA_ATOMIC2_IMAX = 0x153,
    GNI_FMA_ATOMIC2_IMAX_SC = 0x372,
    GNI_FMA_ATOMIC2_IMAX_C = 0x173,
    GNI_FMA_ATOMIC2_IADD_S = 0x354,
    GNI_FMA_ATOMIC2_IADD = 0x155,
    GNI_FMA_ATOMIC2_IADD_SC = 0x374,
    GNI_FMA_ATOMIC2_IADD_C = 0x175,
    GNI_FMA_ATOMIC2_FPMIN_S = 0x358,
    GNI_FMA_ATOMIC2_FPMIN = 0x159,
    GNI_FMA_ATOMIC2_FPMIN_SC = 0x378,
    GNI_FMA_ATOMIC2_FPMIN_C = 0x179,
    GNI_FMA_ATOMIC2_FPMAX_S = 0x35a,
    GNI_FMA_ATOMIC2_FPMAX = 0x15b,
    GNI_FMA_ATOMIC2_FPMAX_SC = 0x37a,
    GNI_FMA_ATOMIC2_FPMAX_C = 0x17b,
    GNI_FMA_ATOMIC2_FPADD_S = 0x35c,
    GNI_FMA_ATOMIC2_FPADD = 0x15d,
    GNI_FMA_ATOMIC2_FPADD_SC = 0x37c,
    GNI_FMA_ATOMIC2_FPADD_C = 0x17d,
} gni_fma_cmd_type_t;

/* Reductions of the collective engine. LIDX, GIDX: lowest, greatest index wins. _S: 32 bits. */
typedef enum gni_ce_cmd_type {
    GNI_FMA_CE_AND_S = 0x00,
    GNI_FMA_CE_AND = 0x01,
    GNI_FMA_CE_OR_S = 0x02,
    GNI_FMA_CE_OR = 0x03,
    GNI_FMA_CE_XOR_S = 0x04,
    GNI_FMA_CE_XOR = 0x05,
    GNI_FMA_CE_IMIN_LIDX_S = 0x10,
    GNI_FMA_CE_IMIN_LIDX = 0x11,
    GNI_FMA_CE_IMAX_LIDX_S = 0x12,
    GNI_FMA_CE_IMAX_LIDX = 0x13,
    GNI_FMA_CE_IADD_S = 0x14,
    GNI_FMA_CE_IADD = 0x15,
    GNI_FMA_CE_FPMIN_LIDX_S = 0x18,
    GNI_FMA_CE_FPMIN_LIDX = 0x19,
    GNI_FMA_CE_FPMAX_LIDX_S = 0x1a,
    GNI_FMA_CE_FPMAX_LIDX = 0x1b,
    GNI_FMA_CE_FPADD_S = 0x1c,
    GNI_FMA_CE_FPADD = 0x1d,
    GNI_FMA_CE_IMIN_GIDX_S = 0x30,
    GNI_FMA_CE_IMIN_GIDX = 0x31,
    GNI_FMA_CE_IMAX_GIDX_S = 0x32,
    GNI_FMA_CE_IMAX_GIDX = 0x33,
    GNI_FMA_CE_FPMIN_GIDX_S = 0x38,
    GNI_FMA_CE_FPMIN_GIDX = 0x39,
    GNI_FMA_CE_FPMAX_GIDX_S = 0x3a,
    GNI_FMA_CE_FPMAX_GIDX = 0x3b,
} gni_ce_cmd_type_t;

/* Where a reduction's result lands; registered memory, 32-byte aligned. */
typedef struct gni_ce_result {
    uint64_t control;
    uint64_t result1;
    uint64_t result2;
} gni_ce_result_t;

uint64_t gni_ce_res_get_status(gni_ce_result_t *);
uint64_t gni_ce_res_status_ok(gni_ce_result_t *);
uint64_t gni_ce_res_get_fpe(gni_ce_result_t *);
uint64_t gni_ce_res_get_red_id(gni_ce_result_t *);
#define GNI_CE_RES_GET_STATUS gni_ce_res_get_status
#define GNI_CE_RES_STATUS_OK  gni_ce_res_status_ok
#define GNI_CE_RES_GET_FPE    gni_ce_res_get_fpe
#define GNI_CE_RES_GET_RED_ID gni_ce_res_get_red_id

/* Floating-point exceptions of a reduction. */
#define GNI_CE_FPE_OP_INVAL  0x1
#define GNI_CE_FPE_OFLOW     0x2
#define GNI_CE_FPE_UFLOW     0x4
#define GNI_CE_FPE_PRECISION 0x8 /* inexact result */

typedef enum {
    GNI_CE_CHILD_UNUSED = 0,
    GNI_CE_CHILD_VCE = 1,
    GNI_CE_CHILD_PE = 2,
} gni_ce_child_t;

/* GNI_CeConfigure(): one rounding, one event and one routing mode. */
#define GNI_CE_MODE_ROUND_UP     0x00000001
#define GNI_CE_MODE_ROUND_DOWN   0x00000002
#define GNI_CE_MODE_ROUND_NEAR   0x00000004
#define GNI_CE_MODE_ROUND_ZERO   0x00000008
#define GNI_CE_MODE_CQE_ONCOMP   0x00000010
#define GNI_CE_MODE_CQE_ONERR    0x00000040
#define GNI_CE_MODE_RC_NMIN_HASH 0x00000080
#define GNI_CE_MODE_RC_MIN_HASH  0x00000100
#define GNI_CE_MODE_RC_MNON_HASH 0x00000200
#define GNI_CE_MODE_RC_ADAPT     0x00000400
#define GNI_CE_MAX_CHILDREN      32

/* cq_mode: which events a post makes. */
#define GNI_CQMODE_SILENT       0x0000 /* no event */
#define GNI_CQMODE_LOCAL_EVENT  0x0001 /* source buffer reusable */
#define GNI_CQMODE_GLOBAL_EVENT 0x0002 /* data at target */
#define GNI_CQMODE_REMOTE_EVENT 0x0004 /* event on CQ tied to remote memory handle */
#define GNI_CQMODE_DUAL_EVENTS  (GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT)

/* dlvr_mode: routing. Checked; every path here delivers in order. */
#define GNI_DLVMODE_PERFORMANCE  0x0000 /* fully adaptive */
#define GNI_DLVMODE_NO_ADAPT     0x0001
#define GNI_DLVMODE_NO_HASH      0x0002
#define GNI_DLVMODE_NO_RADAPT    0x0004
#define GNI_DLVMODE_IN_ORDER     (GNI_DLVMODE_NO_ADAPT | GNI_DLVMODE_NO_HASH)
#define GNI_DLVMODE_MNON_HASH    GNI_DLVMODE_IN_ORDER
#define GNI_DLVMODE_NMIN_HASH    0x0008
#define GNI_DLVMODE_MIN_HASH     0x0010
#define GNI_DLVMODE_ADAPTIVE0    GNI_DLVMODE_PERFORMANCE
#define GNI_DLVMODE_ADAPTIVE1    0x0020
#define GNI_DLVMODE_ADAPTIVE2    0x0040
#define GNI_DLVMODE_ADAPTIVE3    0x0080
#define GNI_DLVMODE_ORDERED_TAIL 0x0100 /* last packet ordered behind the rest; not in chains */

/* rdma_mode. */
#define GNI_RDMAMODE_PHYS_ADDR 0x0001 /* kernel: local address is physical */
#define GNI_RDMAMODE_FENCE     0x0002 /* wait for all earlier posts; needs single channel mode */
#define GNI_RDMAMODE_GETWC_DIS 0x0004 /* Aries: no write combining of GET data */

/* ce_mode. */
#define GNI_CEMODE_TWO_OP        (1 << 0) /* both operands of a single-operand reduction */
#define GNI_CEMODE_FPE_OP_INVAL  (1 << 1) /* the operands already suffered this exception */
#define GNI_CEMODE_FPE_OFLOW     (1 << 2)
#define GNI_CEMODE_FPE_UFLOW     (1 << 3)
#define GNI_CEMODE_FPE_PRECISION (1 << 4)

/*
 * A post. It belongs to the library from the post until GNI_GetCompleted() hands it back; meanwhile
 * the library writes next_descr, prev_descr, status, cq_mode_complete and, for RDMA, src_cq_hndl.
 */
typedef struct gni_post_descriptor {
    void *next_descr; /* of a chain: the next gni_ct_*_post_descriptor_t */
    void *prev_descr;
    uint64_t post_id; /* the caller's */
    uint64_t status;
    uint16_t cq_mode_complete; /* events that have come */
    gni_post_type_t type;
    uint16_t cq_mode;
    uint16_t dlvr_mode;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
    uint64_t remote_addr; /* of segments: the offset from the first one's start */
    gni_mem_handle_t remote_mem_hndl;
    uint64_t length;
    uint16_t rdma_mode;          /* RDMA */
    gni_cq_handle_t src_cq_hndl; /* RDMA: queue for the source events, else the endpoint's */
    uint64_t sync_flag_value;    /* FMA_PUT_W_SYNCFLAG, flagged GET and AMO */
    uint64_t sync_flag_addr;
    gni_fma_cmd_type_t amo_cmd; /* AMO */
    uint64_t first_operand;
    uint64_t second_operand;
    uint64_t cqwrite_value;   /* CQWRITE: the low 48 bits travel */
    gni_ce_cmd_type_t ce_cmd; /* CE */
    uint32_t ce_mode;
    uint64_t ce_red_id;
} gni_post_descriptor_t;

/*
 * Elements of a chain (GNI_CtPostFma, GNI_CtPostCqWrite). Each has its own endpoint; type, event
 * and delivery mode are those of the descriptor at the head.
 */
typedef struct gni_ct_put_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
} gni_ct_put_post_descriptor_t;

typedef struct gni_ct_get_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
} gni_ct_get_post_descriptor_t;

typedef struct gni_ct_amo_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
    gni_fma_cmd_type_t amo_cmd;
    uint64_t first_operand;
    uint64_t second_operand;
} gni_ct_amo_post_descriptor_t;

typedef struct gni_ct_cqw_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t cqwrite_value;
} gni_ct_cqw_post_descriptor_t;

typedef struct gni_ct_uni_post_descriptor {
    union {
        gni_ct_put_post_descriptor_t put;
        gni_ct_get_post_descriptor_t get;
        gni_ct_amo_post_descriptor_t amo;
        gni_ct_cqw_post_descriptor_t cqw;
    } u;
} gni_ct_uni_post_descriptor_t;

/* ---- short messages ------------------------------------------------------------------- */

typedef enum gni_smsg_type {
    GNI_SMSG_TYPE_INVALID = 0,
    GNI_SMSG_TYPE_MBOX = 1,                 /* mailbox, caller handles resends */
    GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT = 2, /* mailbox, library resends after errors */
} gni_smsg_type_t;

#define GNI_SMSG_ANY_TAG             0xff
#define GNI_SMSG_MAX_SIZE            65535 /* header and data together, bytes */
#define FMA_SMSG_MAX_RETRANS_DEFAULT 10

typedef struct gni_smsg_attr {
    gni_smsg_type_t msg_type;
    void *msg_buffer;   /* start of the registered memory, in its owner's process */
    uint32_t buff_size; /* of one mailbox */
    gni_mem_handle_t mem_hndl;
    uint32_t mbox_offset;    /* where in the memory the mailbox lies */
    uint16_t mbox_maxcredit; /* messages under way at most */
    uint32_t msg_maxsize;
} gni_smsg_attr_t;

/* ---- jobs, devices, resources --------------------------------------------------------- */

typedef struct gni_ntt_entry {
    uint32_t blck_addr;
    uint32_t rplc_addr;
    uint8_t rplc_size;
} gni_ntt_entry_t;

typedef struct gni_ntt_descriptor {
    uint32_t group_size;
    uint8_t granularity;
    union {
        uint32_t *table;
        gni_ntt_entry_t *table_v2;
    } u;
    uint8_t flags;
} gni_ntt_descriptor_t;

#define GNI_JOB_INVALID_LIMIT    (-1) /* leave this limit as it is */
#define GNI_JOB_CTRL_NTT_CLEANUP (0x01)
#define GNI_JOB_CTRL_CE0_MASK    (1 << 0)
#define GNI_JOB_CTRL_CE1_MASK    (1 << 1)
#define GNI_JOB_CTRL_CE2_MASK    (1 << 2)
#define GNI_JOB_CTRL_CE3_MASK    (1 << 3)
#define GNI_JOB_CTRL_ALL_CE_MASK                                                                   \
    (GNI_JOB_CTRL_CE0_MASK | GNI_JOB_CTRL_CE1_MASK | GNI_JOB_CTRL_CE2_MASK | GNI_JOB_CTRL_CE3_MASK)

typedef struct gni_job_limits {
    int32_t mdd_limit; /* registrations */
    union {
        int32_t mrt_limit; /* Gemini */
        struct {
            uint8_t ce_limit;    /* Aries: collective engine channels */
            uint8_t iommu_limit; /* Aries: 2^N MiB of address space */
            uint8_t res_byte2;
            uint8_t res_byte3;
        } m;
    } a;
    union {
        int32_t gart_limit; /* Gemini */
        int32_t dla_limit;  /* Aries */
    } b;
    int32_t fma_limit; /* NIC attachments */
    int32_t bte_limit; /* RDMA posts under way */
    int32_t cq_limit;
    int32_t ntt_ctrl; /* GNI_JOB_CTRL_* */
    int32_t ntt_base;
    int32_t ntt_size;
} gni_job_limits_t;

typedef enum gni_nic_device {
    GNI_DEVICE_GEMINI = 0, /* first generation NIC */
    GNI_DEVICE_ARIES = 1,  /* second generation NIC */
    GNI_DEVICE_PISCES = 2,
    GNI_DEVICE_LAST = 3,
} gni_nic_device_t;

typedef enum gni_dev_res {
    GNI_DEV_RES_FIRST = 0,
    GNI_DEV_RES_MDD = 1,
    GNI_DEV_RES_MRT = 2,
    GNI_DEV_RES_CQ = 3,
    GNI_DEV_RES_FMA = 4,
    GNI_DEV_RES_CE = 5,
    GNI_DEV_RES_DLA = 6,
#if WEFT_GNI_API < 0x5d
    GNI_DEV_RES_LAST = 7
#else
    GNI_DEV_RES_TCR = 7,
    GNI_DEV_RES_DVA = 8,
    GNI_DEV_RES_LAST = 9
#endif
} gni_dev_res_t;

typedef struct gni_dev_res_desc {
    uint64_t available;
    uint64_t reserved;
    uint64_t held;
    uint64_t total;
} gni_dev_res_desc_t;

typedef enum gni_job_res {
    GNI_JOB_RES_FIRST = 0,
    GNI_JOB_RES_MDD = 1,
    GNI_JOB_RES_MRT = 2,
    GNI_JOB_RES_IOMMU = 3,
    GNI_JOB_RES_GART = 4,
    GNI_JOB_RES_CQ = 5,
    GNI_JOB_RES_FMA = 6,
    GNI_JOB_RES_RMDA = 7, /* the spelling of 0x5c */
    GNI_JOB_RES_RDMA = 7,
    GNI_JOB_RES_CE = 8,
    GNI_JOB_RES_DLA = 9,
    GNI_JOB_RES_SFMA = 10,
#if WEFT_GNI_API < 0x5d
    GNI_JOB_RES_LAST = 11
#else
    GNI_JOB_RES_DIRECT = 11,
    GNI_JOB_RES_PCI_IOMMU = 12,
    GNI_JOB_RES_NONVMDH = 13,
    GNI_JOB_RES_LAST = 14
#endif
} gni_job_res_t;

typedef struct gni_job_res_desc {
    uint64_t used;
    uint64_t limit;
} gni_job_res_desc_t;

uint32_t gni_dev_res_valid(gni_dev_res_t);
const char *gni_dev_res_to_str(gni_dev_res_t);
uint32_t gni_job_res_valid(gni_job_res_t);
const char *gni_job_res_to_str(gni_job_res_t);

/* Counters of a NIC handle. Programs built with CRAY_CONFIG_GHAL_ARIES see the longer list. */
typedef enum gni_statistic {
    GNI_STAT_SMSG_BUFF_CREDITS_STALL = 0,
    GNI_STAT_SMSG_DLA_STALL,
    GNI_STAT_SMSG_MBOX_CREDITS_STALL,
    GNI_STAT_SMSG_REQ_STALL,
    GNI_STAT_SMSG_RETRANS_COUNT,
    GNI_STAT_SMSG_RETRANS_DLA_COUNT,
    GNI_STAT_SMSG_RETRANS_STALL,
#ifdef CRAY_CONFIG_GHAL_ARIES
    GNI_STAT_DLA_ALLOC_STATUS_STALL,
    GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT,
    GNI_STAT_DLA_BLOCK_ORPHANED,
    GNI_STAT_DLA_BLOCK_RETRANS_COUNT,
    GNI_STAT_DLA_FREE_BLOCKS_STALL,
    GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL,
    GNI_STAT_DLA_HIGH_RETRANS_COUNT,
    GNI_STAT_DLA_OVERFLOW_RESEND,
    GNI_STAT_DLA_RETRANS_COUNT,
    GNI_STAT_DLA_TOTAL_RETRANS_COUNT,
    GNI_STAT_FLBTE_TXD_CORRUPT,
    GNI_STAT_FLBTE_TXD_NONE,
#if WEFT_GNI_API >= 0x5d
    GNI_STAT_FMA_LAUNCH_COUNT,
#endif
#endif
#if WEFT_GNI_API >= 0x5d
    GNI_STAT_MR_MULTI_PAGESIZE,
#endif
    GNI_NUM_STATS
} gni_statistic_t;

/* Names of the counters of the longer list, in its order. */
extern const char *gni_statistic_str[];

/* ---- error events --------------------------------------------------------------------- */

#define GNI_ERRMASK_CORRECTABLE_MEMORY  (1 << 0)
#define GNI_ERRMASK_CRITICAL            (1 << 1)
#define GNI_ERRMASK_TRANSACTION         (1 << 2)
#define GNI_ERRMASK_ADDRESS_TRANSLATION (1 << 3)
#define GNI_ERRMASK_TRANSIENT           (1 << 4)
#define GNI_ERRMASK_INFORMATIONAL       (1 << 5)
#define GNI_ERRMASK_DIAG_ONLY           (1 << 6)
#define GNI_ERRMASK_UNKNOWN_TRANSACTION (1 << 7)

typedef uint8_t gni_error_mask_t;

typedef struct gni_error_event {
    uint16_t error_code;
    uint8_t error_category; /* one GNI_ERRMASK_* bit */
    uint8_t ptag;
    uint32_t serial_number;
    uint64_t timestamp;
    uint64_t info_mmrs[4];
} gni_error_event_t;

/* ---- shared message queues ------------------------------------------------------------ */

#define GNI_MSGQ_MSG_SZ_MAX 128 /* bytes */
#if WEFT_GNI_API < 0x5d
#define GNI_MSGQ_NODE_INSTS_MAX 48
#else
#define GNI_MSGQ_NODE_INSTS_MAX 128
#endif
#define GNI_MSGQ_MODE_BLOCKING (0x01)

/* Called by GNI_MsgqProgress() for each message; 0 leaves that call. */
typedef int gni_msgq_rcv_cb_func(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag,
                                 void *cb_data);

typedef struct gni_msgq_attr {
    uint32_t max_msg_sz;
    uint32_t smsg_q_sz; /* messages under way to one node: 1 or even */
    uint32_t rcv_pool_sz;
    uint32_t num_msgq_eps; /* other nodes */
    uint32_t nloc_insts;   /* instances on this node */
    uint8_t modes;
    uint32_t rcv_cq_sz;
} gni_msgq_attr_t;

typedef struct gni_msgq_rem_inst {
    uint32_t id;
    gni_mem_handle_t mdh;
    uint64_t mdh_off;
} gni_msgq_rem_inst_t;

typedef struct gni_msgq_ep_attr {
    uint32_t pe_addr;
    uint32_t max_msg_sz;
    uint32_t smsg_q_sz;
    uint32_t num_insts;
    gni_msgq_rem_inst_t insts[GNI_MSGQ_NODE_INSTS_MAX];
} gni_msgq_ep_attr_t;

/* ---- version of the libraries, balanced injection ------------------------------------- */

#define MAX_BUILD_STRING_LENGTH 80

typedef struct gni_version_info {
    uint32_t ugni_version;
    uint32_t ugni_svn_revision;
    char ugni_build_string[MAX_BUILD_STRING_LENGTH];
    uint32_t kgni_version;
    uint32_t kgni_svn_revision;
    char kgni_build_string[MAX_BUILD_STRING_LENGTH];
} gni_version_info_t;

#define GNI_BI_FLAG_APPLY_NOW                0x1
#define GNI_BI_FLAG_APPLY_AFTER_THROTTLE     0x2
#define GNI_BI_FLAG_USE_DEFAULT_SETTINGS     0x4
#define GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES 0x8
#define GNI_BI_INJECT_BW_MIN                 0
#define GNI_BI_INJECT_BW_MAX                 100 /* percent */
#define GNI_BI_INJECT_BW_ORB_MIN             0
#define GNI_BI_INJECT_BW_ORB_MAX             992 /* entries */

typedef struct gni_bi_desc {
    uint16_t current_bw;
    uint16_t current_aot_bw;
    uint16_t current_norbs;
    uint16_t flags;
    uint16_t sys_def_bw;
    uint16_t sys_def_aot_bw;
    uint16_t cle_seqnum;
    uint16_t hss_seqnum;
} gni_bi_desc_t;

/* ==== functions ======================================================================== */

/* ---- domains -------------------------------------------------------------------------- */

/* inst_id names the domain within its tag, cookie and PE. ptag GNI_FIND_ALLOC_PTAG: choose one. */
gni_return_t GNI_CdmCreate(IN uint32_t inst_id, IN uint8_t ptag, IN uint32_t cookie,
                           IN uint32_t modes, OUT gni_cdm_handle_t *cdm_hndl);
/* Everything made under the domain goes with it. */
gni_return_t GNI_CdmDestroy(IN gni_cdm_handle_t cdm_hndl);
/* NO_MATCH: no such device. Works before there is any domain. */
gni_return_t GNI_CdmGetNicAddress(IN uint32_t device_id, OUT uint32_t *address,
                                  OUT uint32_t *cpu_id);
/* device_id -1: the nearest. NO_MATCH: no such device. INVALID_STATE: attached already. */
gni_return_t GNI_CdmAttach(IN gni_cdm_handle_t cdm_hndl, IN uint32_t device_id,
                           OUT uint32_t *local_addr, OUT gni_nic_handle_t *nic_hndl);
/* Mark the domain for a checkpoint: from here to the resume its calls touch no device. */
gni_return_t GNI_CdmCheckpoint(IN gni_cdm_handle_t cdm_handle);
gni_return_t GNI_CdmResume(IN gni_cdm_handle_t cdm_handle);

/* Hold, release the traffic of a job on this host. Root only, and for one's own job. */
gni_return_t GNI_SuspendJob(IN uint32_t device_id, IN uint64_t job_id, IN uint8_t ptag,
                            IN uint32_t cookie, IN uint32_t timeout);
gni_return_t GNI_ResumeJob(IN uint32_t device_id, IN uint64_t job_id, IN uint8_t ptag,
                           IN uint32_t cookie);

/* Node translation table and limits of a job, for launchers. */
gni_return_t GNI_ConfigureNTT(IN int device_id, IN gni_ntt_descriptor_t *ntt_desc,
                              OUT uint32_t *ntt_base);
gni_return_t GNI_ConfigureJob(IN uint32_t device_id, IN uint64_t job_id, IN uint8_t ptag,
                              IN uint32_t cookie, IN gni_job_limits_t *limits);
gni_return_t GNI_ConfigureNTTandJob(IN int device_id, IN uint64_t job_id, IN uint8_t ptag,
                                    IN uint32_t cookie, IN gni_job_limits_t *limits,
                                    IN gni_ntt_descriptor_t *ntt_desc, OUT uint32_t *ntt_base);

/* ---- endpoints ------------------------------------------------------------------------ */

/* src_cq_hndl may be null on an endpoint that carries datagrams only. */
gni_return_t GNI_EpCreate(IN gni_nic_handle_t nic_hndl, IN gni_cq_handle_t src_cq_hndl,
                          OUT gni_ep_handle_t *ep_hndl);
/* Values for source events and for events at the peer; those in force when a post is made count. */
gni_return_t GNI_EpSetEventData(IN gni_ep_handle_t ep_hndl, IN uint32_t local_event,
                                IN uint32_t remote_event);
/* Sets the event values to remote_id and the domain's own inst_id. */
gni_return_t GNI_EpBind(IN gni_ep_handle_t ep_hndl, IN uint32_t remote_addr, IN uint32_t remote_id);
/* NOT_DONE: something is under way. */
gni_return_t GNI_EpUnbind(IN gni_ep_handle_t ep_hndl);
/* SUCCESS when GNI_EpUnbind() would succeed; changes nothing. */
gni_return_t GNI_EpIdle(IN gni_ep_handle_t ep_hndl);
/* Cancels what is under way. */
gni_return_t GNI_EpDestroy(IN gni_ep_handle_t ep_hndl);

/* ---- datagrams ------------------------------------------------------------------------ */

/*
 * An exchange: both sides post, both get the other's bytes. A bound endpoint exchanges with its
 * peer, an unbound one with whoever comes first; it needs the form with an id. ERROR_RESOURCE: the
 * endpoint or the pair of domains already has an exchange under way. SIZE_ERROR: above 128 bytes.
 */
gni_return_t GNI_EpPostData(IN gni_ep_handle_t ep_hndl, IN void *in_data, IN uint16_t data_len,
                            IN void *out_buf, IN uint16_t buf_size);
/* datagram_id: anything but all ones. */
gni_return_t GNI_EpPostDataWId(IN gni_ep_handle_t ep_hndl, IN void *in_data, IN uint16_t data_len,
                               IN void *out_buf, IN uint16_t buf_size, IN uint64_t datagram_id);
/* State of the exchange. A final state is told once. NO_MATCH: nothing posted. */
gni_return_t GNI_EpPostDataTest(IN gni_ep_handle_t ep_hndl, OUT gni_post_state_t *post_state,
                                OUT uint32_t *remote_addr, OUT uint32_t *remote_id);
gni_return_t GNI_EpPostDataTestById(IN gni_ep_handle_t ep_hndl, IN uint64_t datagram_id,
                                    OUT gni_post_state_t *post_state, OUT uint32_t *remote_addr,
                                    OUT uint32_t *remote_id);
/* timeout in milliseconds, -1 for ever; 0 is INVALID_PARAM. */
gni_return_t GNI_EpPostDataWait(IN gni_ep_handle_t ep_hndl, IN uint32_t timeout,
                                OUT gni_post_state_t *post_state, OUT uint32_t *remote_addr,
                                OUT uint32_t *remote_id);
gni_return_t GNI_EpPostDataWaitById(IN gni_ep_handle_t ep_hndl, IN uint64_t datagram_id,
                                    IN uint32_t timeout, OUT gni_post_state_t *post_state,
                                    OUT uint32_t *remote_addr, OUT uint32_t *remote_id);
/* Peer, or id, of the first exchange in a final state, which stays. */
gni_return_t GNI_PostDataProbe(IN gni_nic_handle_t nic_hndl, OUT uint32_t *remote_addr,
                               OUT uint32_t *remote_id);
gni_return_t GNI_PostDataProbeById(IN gni_nic_handle_t nic_hndl, OUT uint64_t *datagram_id);
gni_return_t GNI_PostdataProbeWaitById(IN gni_nic_handle_t nic_hndl, IN uint32_t timeout,
                                       OUT uint64_t *datagram_id);
gni_return_t GNI_EpPostDataCancel(IN gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpPostDataCancelById(IN gni_ep_handle_t ep_hndl, IN uint64_t datagram_id);

/* ---- memory --------------------------------------------------------------------------- */

/*
 * dst_cq_hndl gets the events of remote posts to the memory. vmdh_index counts with
 * GNI_MEM_USE_VMDH only: an entry of the block that GNI_SetMddResources() made, or -1.
 * PERMISSION_ERROR: memory that cannot be written, without GNI_MEM_READ_ONLY.
 */
gni_return_t GNI_MemRegister(IN gni_nic_handle_t nic_hndl, IN uint64_t address, IN uint64_t length,
                             IN gni_cq_handle_t dst_cq_hndl, IN uint32_t flags,
                             IN uint32_t vmdh_index, INOUT gni_mem_handle_t *mem_hndl);
/* Addresses into the memory are offsets into the segments laid end to end. */
gni_return_t GNI_MemRegisterSegments(IN gni_nic_handle_t nic_hndl,
                                     IN gni_mem_segment_t *mem_segments, IN uint32_t segments_cnt,
                                     IN gni_cq_handle_t dst_cq_hndl, IN uint32_t flags,
                                     IN uint32_t vmdh_index, INOUT gni_mem_handle_t *mem_hndl);
gni_return_t GNI_SetMddResources(IN gni_nic_handle_t nic_hndl, IN uint32_t num_entries);
gni_return_t GNI_MemDeregister(IN gni_nic_handle_t nic_hndl, IN gni_mem_handle_t *mem_hndl);
gni_return_t GNI_MemHndlQueryAttr(IN gni_mem_handle_t *mem_hndl, IN gni_mem_handle_attr_t attr,
                                  OUT int *yesno);
/* The same memory layout under another vmdh entry, for another process. */
gni_return_t GNI_RebuildMemHndl(IN gni_mem_handle_t *src_mem_hndl, IN uint32_t vmdh_index,
                                OUT gni_mem_handle_t *dst_mem_hndl);
/* Walk the handles of a NIC: start with a handle of zeroes. Give nic_hndl or fd (-1: none). */
gni_return_t GNI_MemQueryHndls(IN gni_nic_handle_t nic_hndl, IN int fd,
                               INOUT gni_mem_handle_t *mem_hndl, OUT uint64_t *address,
                               OUT uint64_t *length);

/* ---- completion queues ---------------------------------------------------------------- */

/* A queue serves source events or memory, not both. handler, if any, runs once per entry. */
gni_return_t GNI_CqCreate(IN gni_nic_handle_t nic_hndl, IN uint32_t entry_count,
                          IN uint32_t delay_count, IN gni_cq_mode_t mode,
                          IN void (*handler)(gni_cq_entry_t *, void *), IN void *context,
                          OUT gni_cq_handle_t *cq_hndl);
/* ERROR_RESOURCE: endpoints or memory still use it. */
gni_return_t GNI_CqDestroy(IN gni_cq_handle_t cq_hndl);
/*
 * NOT_DONE: empty. TRANSACTION_ERROR: the entry tells of a failure. ERROR_RESOURCE: entries were
 * lost (GNI_CQ_OVERRUN says so too); read on until NOT_DONE.
 */
gni_return_t GNI_CqGetEvent(IN gni_cq_handle_t cq_hndl, OUT gni_cq_entry_t *event_data);
/* timeout in milliseconds, all ones for ever. ERROR_RESOURCE: not a blocking queue. */
gni_return_t GNI_CqWaitEvent(IN gni_cq_handle_t cq_hndl, IN uint64_t timeout,
                             OUT gni_cq_entry_t *event_data);
gni_return_t GNI_CqVectorWaitEvent(IN gni_cq_handle_t *cq_hndls, IN uint32_t num_cqs,
                                   IN uint64_t timeout, OUT gni_cq_entry_t *event_data,
                                   OUT uint32_t *which);
/* Tells which queue has something; takes nothing. */
gni_return_t GNI_CqVectorMonitor(IN gni_cq_handle_t *cq_hndls, IN uint32_t num_cqs,
                                 IN uint64_t timeout, OUT uint32_t *which);
/* While masked, waiting on the queue answers NOT_DONE at once. */
gni_return_t GNI_CqInterruptMask(IN gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqInterruptUnmask(IN gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqTestEvent(IN gni_cq_handle_t cq_hndl);
/* SIZE_ERROR: the text does not fit. */
gni_return_t GNI_CqErrorStr(IN gni_cq_entry_t entry, OUT void *buffer, IN uint32_t len);
gni_return_t GNI_CqErrorRecoverable(IN gni_cq_entry_t entry, OUT uint32_t *recoverable);

/* Completion channels: a file descriptor that tells of events on armed blocking queues. */
gni_return_t GNI_CompChanCreate(IN gni_nic_handle_t nic_hndl,
                                OUT gni_comp_chan_handle_t *chan_hndl);
gni_return_t GNI_CompChanDestroy(IN gni_comp_chan_handle_t chan_hndl);
gni_return_t GNI_CompChanFd(IN gni_comp_chan_handle_t chan_hndl, OUT int *comp_chan_fd);
gni_return_t GNI_CompChanGetEvent(IN gni_comp_chan_handle_t chan_hndl,
                                  OUT gni_cq_handle_t *cq_hndl);
gni_return_t GNI_CqAttachCompChan(IN gni_cq_handle_t cq_hndl, IN gni_comp_chan_handle_t chan_hndl);
gni_return_t GNI_CqArmCompChan(IN gni_cq_handle_t *cq_hndls, IN uint32_t num_cqs);

/* ---- posts ---------------------------------------------------------------------------- */

/* ALIGNMENT_ERROR: see docs/ugni.md for what each operation wants. ERROR_RESOURCE: as many posts
 * are under way as the source queue has entries. */
gni_return_t GNI_PostRdma(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostFma(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostCqWrite(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
/* One post of many elements, one event. */
gni_return_t GNI_CtPostFma(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
gni_return_t GNI_CtPostCqWrite(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
/* The descriptor that an event tells of. DESCRIPTOR_ERROR: the event is not of a post. */
gni_return_t GNI_GetCompleted(IN gni_cq_handle_t cq_hndl, IN gni_cq_entry_t event_data,
                              OUT gni_post_descriptor_t **post_descr);

/* ---- short messages ------------------------------------------------------------------- */

/* Bytes that one mailbox of these attributes takes. */
gni_return_t GNI_SmsgBufferSizeNeeded(IN gni_smsg_attr_t *smsg_attr, OUT unsigned int *size);
/* INVALID_STATE: the endpoint is not bound. */
gni_return_t GNI_SmsgInit(IN gni_ep_handle_t ep_hndl, IN gni_smsg_attr_t *local_smsg_attr,
                          IN gni_smsg_attr_t *remote_smsg_attr);
gni_return_t GNI_SmsgSetDeliveryMode(IN gni_nic_handle_t nic_handle, IN uint16_t dlvr_mode);
gni_return_t GNI_SmsgSetMaxRetrans(IN gni_nic_handle_t nic_handle, IN uint16_t max_retrans);
/* NOT_DONE: no credit. ERROR_RESOURCE: longer than msg_maxsize. */
gni_return_t GNI_SmsgSend(IN gni_ep_handle_t ep_hndl, IN void *header, IN uint32_t header_length,
                          IN void *data, IN uint32_t data_length, IN uint32_t msg_id);
gni_return_t GNI_SmsgSendWTag(IN gni_ep_handle_t ep_hndl, IN void *header,
                              IN uint32_t header_length, IN void *data, IN uint32_t data_length,
                              IN uint32_t msg_id, IN uint8_t tag);
/* Makes the next message current; it stays until GNI_SmsgRelease(). */
gni_return_t GNI_SmsgGetNext(IN gni_ep_handle_t ep_hndl, OUT void **header);
/* *tag: wanted tag or GNI_SMSG_ANY_TAG, then the tag found. NO_MATCH: another tag is next. */
gni_return_t GNI_SmsgGetNextWTag(IN gni_ep_handle_t ep_hndl, OUT void **header, OUT uint8_t *tag);
gni_return_t GNI_SmsgRelease(IN gni_ep_handle_t ep_hndl);

/* ---- shared message queues ------------------------------------------------------------ */

gni_return_t GNI_MsgqInit(IN gni_nic_handle_t nic_hndl, IN gni_msgq_rcv_cb_func *rcv_cb,
                          IN void *cb_data, IN gni_cq_handle_t snd_cq, IN gni_msgq_attr_t *attrs,
                          OUT gni_msgq_handle_t *msgq_hndl);
gni_return_t GNI_MsgqRelease(IN gni_msgq_handle_t msgq_hndl);
gni_return_t GNI_MsgqIdle(IN gni_msgq_handle_t msgq_hndl);
gni_return_t GNI_MsgqGetConnAttrs(IN gni_msgq_handle_t msgq_hndl, IN uint32_t pe_addr,
                                  OUT gni_msgq_ep_attr_t *attrs, OUT uint32_t *attrs_size);
gni_return_t GNI_MsgqConnect(IN gni_msgq_handle_t msgq_hndl, IN uint32_t pe_addr,
                             IN gni_msgq_ep_attr_t *attrs);
gni_return_t GNI_MsgqConnRelease(IN gni_msgq_handle_t msgq_hndl, IN uint32_t pe_addr);
gni_return_t GNI_MsgqSend(IN gni_msgq_handle_t msgq_hndl, IN gni_ep_handle_t ep_hndl, IN void *hdr,
                          IN uint32_t hdr_len, IN void *msg, IN uint32_t msg_len,
                          IN uint32_t msg_id, IN uint8_t msg_tag);
gni_return_t GNI_MsgqProgress(IN gni_msgq_handle_t msgq_hndl, IN uint32_t timeout);
gni_return_t GNI_MsgqSize(IN gni_msgq_attr_t *attrs, OUT uint32_t *size);

/* ---- collective engine ---------------------------------------------------------------- */

/* ILLEGAL_OP on a device that is not Aries. */
gni_return_t GNI_CeCreate(IN gni_nic_handle_t nic_hndl, OUT gni_ce_handle_t *ce_hndl);
gni_return_t GNI_CeGetId(IN gni_ce_handle_t ce_hndl, OUT uint32_t *ce_id);
gni_return_t GNI_EpSetCeAttr(IN gni_ep_handle_t ep_hndl, IN uint32_t ce_id, IN uint32_t child_id,
                             IN gni_ce_child_t child_type);
gni_return_t GNI_CeConfigure(IN gni_ce_handle_t ce_hndl, IN gni_ep_handle_t *child_eps,
                             IN uint32_t num_child_eps, IN gni_ep_handle_t parent_ep,
                             IN gni_cq_handle_t cq_hndl, IN uint32_t modes);
/* NOT_DONE until the result is there. TRANSACTION_ERROR: failed, or with an FP exception. */
gni_return_t GNI_CeCheckResult(IN gni_ce_result_t *result, IN uint32_t length);
gni_return_t GNI_CeDestroy(IN gni_ce_handle_t ce_hndl);

/* ---- error events --------------------------------------------------------------------- */

/* nic_handle null: all tags of the device, for root. EEQ_size 0: 64 entries. */
gni_return_t GNI_SubscribeErrors(IN gni_nic_handle_t nic_handle, IN uint32_t device_id,
                                 IN gni_error_mask_t mask, IN uint32_t EEQ_size,
                                 OUT gni_err_handle_t *err_handle);
/* NOT_DONE: a thread waits on it. */
gni_return_t GNI_ReleaseErrors(IN gni_err_handle_t err_handle);
gni_return_t GNI_GetErrorMask(IN gni_err_handle_t err_handle, OUT gni_error_mask_t *mask);
/* mask_out gets the previous mask. */
gni_return_t GNI_SetErrorMask(IN gni_err_handle_t err_handle, IN gni_error_mask_t mask_in,
                              IN gni_error_mask_t *mask_out);
gni_return_t GNI_GetErrorEvent(IN gni_err_handle_t err_handle, IN gni_error_event_t *event);
/* Waits for the first event for ever, then `timeout` milliseconds for more. */
gni_return_t GNI_WaitErrorEvents(IN gni_err_handle_t err_handle, IN gni_error_event_t *events,
                                 IN uint32_t events_size, IN uint32_t timeout,
                                 OUT uint32_t *num_events);
gni_return_t GNI_SetErrorPtag(IN gni_err_handle_t err_handle, IN uint8_t ptag);

/* ---- devices, versions, resources, statistics ----------------------------------------- */

gni_return_t GNI_GetNumLocalDevices(OUT int *num_devices);
gni_return_t GNI_GetLocalDeviceIds(IN int len, OUT int *device_ids);
gni_return_t GNI_GetVersion(OUT uint32_t *version);
gni_return_t GNI_GetVersionInformation(OUT gni_version_info_t *version_info);
/* Aries, or what WEFT_GNI_DEVICE says. */
gni_return_t GNI_GetDeviceType(OUT gni_nic_device_t *dev_type);
/* ERROR_RESOURCE: the device has no such resource. */
gni_return_t GNI_GetDevResInfo(IN uint32_t device_id, IN gni_dev_res_t res_type,
                               OUT gni_dev_res_desc_t *res_desc);
gni_return_t GNI_GetJobResInfo(IN uint32_t device_id, IN uint8_t ptag, IN gni_job_res_t res_type,
                               OUT gni_job_res_desc_t *res_desc);
gni_return_t GNI_SetJobResInfo(IN uint32_t device_id, IN uint8_t ptag, IN gni_job_res_t res_type,
                               IN uint64_t res_value);
gni_return_t GNI_GetNttGran(IN uint32_t device_id, OUT uint32_t *ntt_gran);
gni_return_t GNI_GetPtag(IN uint32_t device_id, IN uint32_t cookie, OUT uint8_t *ptag);
gni_return_t GNI_GetNicStat(IN gni_nic_handle_t nic_hndl, IN gni_statistic_t stat,
                            OUT uint32_t *value);
gni_return_t GNI_ResetNicStat(IN gni_nic_handle_t nic_hndl, IN gni_statistic_t stat);

/* Balanced injection. Set for root; kept and read back, nothing is throttled. */
gni_return_t GNI_SetBIConfig(IN uint32_t device_id, IN uint16_t bw, IN uint16_t aot_bw,
                             IN uint16_t modes);
gni_return_t GNI_GetBIConfig(IN uint32_t device_id, OUT gni_bi_desc_t *desc);
gni_return_t GNI_BISyncWait(IN uint32_t device_id, OUT uint32_t timeout);

#ifdef __cplusplus
}
#endif

#endif
