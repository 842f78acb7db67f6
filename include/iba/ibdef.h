// SPDX-License-Identifier: BSD-2-Clause
// Types of the async verbs: the Windows kernel verbs of the RFC of November 2005. Layout and names
// are the RFC's; every structure here is a multiple of 8 bytes and 8-byte aligned. Where the RFC
// contradicts itself, "decision n" refers to docs/async-verbs.md.
//
// Byte order: GUIDs, GIDs, VerClassFlow and ImmediateData are in network order, all else in host
// order (decision 23).
#ifndef _IBDEFS_
#define _IBDEFS_

#include "weft/wdm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _IB_CA *IB_CA_HANDLE, *__ptr64 IB_CA_HANDLE64;
typedef struct _IB_PD *IB_PD_HANDLE, *__ptr64 IB_PD_HANDLE64;
typedef struct _IB_CQ *IB_CQ_HANDLE, *__ptr64 IB_CQ_HANDLE64;
typedef struct _IB_SRQ *IB_SRQ_HANDLE, *__ptr64 IB_SRQ_HANDLE64;
typedef struct _IB_QP *IB_QP_HANDLE, *__ptr64 IB_QP_HANDLE64;
typedef struct _IB_AH *IB_ADDR_HANDLE, *__ptr64 IB_ADDR_HANDLE64;
typedef struct _IB_MR *IB_MR_HANDLE, *__ptr64 IB_MR_HANDLE64;
typedef struct _IB_MW *IB_MW_HANDLE, *__ptr64 IB_MW_HANDLE64;

// ---- addresses ----------------------------------------------------------------------------------

typedef union DECLSPEC_ALIGN(8) _IB_GID {
    UCHAR Raw[16];
    struct _IB_GID_UNICAST {
        UINT64 Prefix;
        UINT64 InterfaceId;
    } Unicast;
    struct _IB_GID_MULTICAST {
        UCHAR Header[2];
        UCHAR RawGroupId[14];
    } Multicast;
} IB_GID;

typedef struct DECLSPEC_ALIGN(8) _IB_GRH {
    ULONG VerClassFlow; // network order: version 4 bits, traffic class 8, flow label 20
    USHORT PayloadLength;
    UCHAR NextHdr;
    UCHAR HopLimit;
    IB_GID SGid;
    IB_GID DGid;
} IB_GRH;

// ---- port and CA attributes ---------------------------------------------------------------------

typedef enum _IB_MTU {
    IB_MTU_256 = 1,
    IB_MTU_512 = 2,
    IB_MTU_1024 = 3,
    IB_MTU_2048 = 4,
    IB_MTU_4096 = 5
} IB_MTU;

typedef enum _IB_LINK_STATE {
    IB_LINK_NO_CHANGE = 0,
    IB_LINK_DOWN = 1,
    IB_LINK_INIT = 2,
    IB_LINK_ARMED = 3,
    IB_LINK_ACTIVE = 4,
    IB_LINK_ACT_DEFER = 5
} IB_LINK_STATE;

typedef enum _IB_LINK_WIDTH {
    IB_LINK_WIDTH_1X = 1,
    IB_LINK_WIDTH_4X = 2,
    IB_LINK_WIDTH_8X = 4,
    IB_LINK_WIDTH_12X = 8
} IB_LINK_WIDTH;

typedef enum _IB_LINK_SPEED {
    IB_LINK_SPEED_2_5_GBS = 1,
    IB_LINK_SPEED_5_GBS = 2,
    IB_LINK_SPEED_10_GBS = 4
} IB_LINK_SPEED;

enum IB_PORT_CAP_FLAGS {
    IB_PORT_CAP_IS_SM = (1 << 1),
    IB_PORT_CAP_NOTICE_SUP = (1 << 2),
    IB_PORT_CAP_TRAP_SUP = (1 << 3),
    IB_PORT_CAP_OPT_IPD_SUP = (1 << 4),
    IB_PORT_CAP_APM_SUP = (1 << 5),
    IB_PORT_CAP_SL_MAP_SUP = (1 << 6),
    IB_PORT_CAP_MKEY_NVRAM = (1 << 7),
    IB_PORT_CAP_PKEY_NVRAM = (1 << 8),
    IB_PORT_CAP_LED_INFO_SUP = (1 << 9),
    IB_PORT_CAP_IS_SM_DISABLED = (1 << 10),
    IB_PORT_CAP_SYS_IMAGE_GUID_SUP = (1 << 11),
    IB_PORT_CAP_PKEY_SW_EXT_PORT_TRAP_SUP = (1 << 12),
    IB_PORT_CAP_CM_SUP = (1 << 16),
    IB_PORT_CAP_SNMP_TUNNEL_SUP = (1 << 17),
    IB_PORT_CAP_REINIT_SUP = (1 << 18),
    IB_PORT_CAP_DEVICE_MGMT_SUP = (1 << 19),
    IB_PORT_CAP_VENDOR_CLASS_SUP = (1 << 20),
    IB_PORT_CAP_DR_NOTICE_SUP = (1 << 21),
    IB_PORT_CAP_CAP_MASK_NOTICE_SUP = (1 << 22),
    IB_PORT_CAP_BOOT_MGMT_SUP = (1 << 23),
    IB_PORT_CAP_LINK_LATENCY_SUP = (1 << 24),
    IB_PORT_CAP_CLIENT_REG_SUP = (1 << 25)
};

enum _IB_INIT_TYPE {
    IB_INIT_TYPE_NO_LOAD = 1,
    IB_INIT_TYPE_PRESERVE_CONTENT = (1 << 1),
    IB_INIT_TYPE_PRESERVE_PRESENCE = (1 << 2),
    IB_INIT_TYPE_DO_NOT_RESUSCITATE = (1 << 3)
};

// Followed by the port's GID and P_Key tables. All offsets count from the start of this structure.
typedef struct DECLSPEC_ALIGN(8) _IB_PORT_ATTR {
    ULONG Size;              // bytes with both tables
    ULONG CapabilitiesFlags; // IB_PORT_CAP_FLAGS
    UINT64 PortGuid;
    IB_LINK_STATE LinkState;
    IB_LINK_WIDTH LinkWidth;
    IB_LINK_SPEED LinkSpeed; // the fastest named here when the link is faster
    ULONG LinkWidthSup;
    ULONG LinkSpeedSup;
    ULONG LinkWidthEnabled;
    ULONG LinkSpeedEnabled;
    IB_MTU Mtu;
    UINT64 MaxMsgSize;
    USHORT NumGids;
    USHORT NumPkeys;
    ULONG NextPortAttrOffset; // 0 for the last port
    ULONG GidTblOffset;       // IB_GID[NumGids]
    ULONG PkeyTblOffset;      // USHORT[NumPkeys]
    USHORT PkeyViolations;
    USHORT QkeyViolations;
    USHORT BaseLid;
    USHORT SmLid;
    USHORT MaxVls;
    UCHAR Lmc;
    UCHAR PortNum;
    UCHAR InitTypeReply;
    UCHAR SubnetTimeout; // 4.096 us times 2 to this
    UCHAR SmSvcLvl;
} IB_PORT_ATTR;

enum IB_MODIFY_PORT_FLAGS {
    IB_MOD_PORT_SHUTDOWN = (1 << 0),
    IB_MOD_PORT_INIT_REPLY = (1 << 1),
    IB_MOD_PORT_RESET_QKEY_VIOLATIONS = (1 << 2)
};

// The masks always count; zero changes nothing (decision 14).
typedef struct DECLSPEC_ALIGN(8) _IB_MODIFY_PORT {
    ULONG SetCapabilites;
    ULONG ClearCapabilites;
    UCHAR InitTypeReply;
} IB_MODIFY_PORT;

enum IB_CA_CAP_FLAGS {
    IB_CA_CAP_RESIZE_MAX_WR = (1 << 0),
    IB_CA_CAP_BAD_PKEY_CNTR = (1 << 1),
    IB_CA_CAP_BAD_QKEY_CNTR = (1 << 2),
    IB_CA_CAP_AUTO_PATH_MIG = (1 << 3),
    IB_CA_CAP_CHANGE_PHY_PORT = (1 << 4),
    IB_CA_CAP_AH_PORT_ENFORCE = (1 << 5),
    IB_CA_CAP_CURR_QP_STATE_MOD = (1 << 6),
    IB_CA_CAP_SHUTDOWN_PORT = (1 << 7),
    IB_CA_CAP_INIT_TYPE = (1 << 8),
    IB_CA_CAP_PORT_ACTIVE_EVENT = (1 << 9),
    IB_CA_CAP_SYS_IMAGE_GUID = (1 << 10),
    IB_CA_CAP_RC_RNR_NAK_GEN = (1 << 11),
    IB_CA_CAP_N_NOTIFY_CQ = (1 << 12),
    IB_CA_CAP_SRQ_RESIZE = (1 << 13)
};

typedef enum _IB_ATOMIC_CAP { IbAtomicNone, IbAtomicLocal, IbAtomicGlobal } IB_ATOMIC_CAP;

// Followed by one IB_PORT_ATTR, with its tables, for each port.
typedef struct DECLSPEC_ALIGN(8) _IB_CA_ATTR {
    ULONG Size; // bytes with everything that follows
    UINT32 VendorId;
    UINT16 DeviceId;
    UINT16 DeviceRev;
    UINT32 DriverVersion;
    UINT64 FwVersion;
    UINT64 CaGuid;
    UINT64 SystemImageGuid;
    ULONG PortAttrOffset; // of the first port, from the start of this structure
    UINT8 NumPorts;
    UINT8 MaxQpReadAtomic; // clamped to 255, as the next two (decision 33)
    UINT8 MaxReadAtomic;
    UINT8 MaxQpInitReadAtomic;
    UINT64 PageSizeSupport; // bit k, counted from 0: pages of 2^(k+1) bytes
    ULONG CapabilitiesFlags;
    IB_ATOMIC_CAP AtomicCap;
    ULONG MaxQp;
    ULONG MaxQpWr;
    ULONG MaxQpSge;
    ULONG MaxCq;
    ULONG MaxCqe;
    ULONG MaxPd;
    ULONG MaxAh;
    ULONG MaxMr;
    UINT64 MaxMrSize;
    ULONG MaxMw;
    ULONG MaxMcastGrp;
    ULONG MaxMcastQp;
    ULONG MaxMcastQpPerGrp;
    ULONG MaxSrq;
    ULONG MaxSrqWr;
    ULONG MaxSrqSge;
    UINT16 MaxPKeys;
    UINT8 LocalAckDelay;
} IB_CA_ATTR;

enum IB_MODIFY_CA_FLAGS {
    IB_MODIFY_CA_SYS_IMAGE_GUID = (1 << 0),
    IB_MODIFY_CA_NODE_DESC = (1 << 1)
};

typedef struct DECLSPEC_ALIGN(8) _IB_MODIFY_CA {
    UINT64 SystemImageGuid;
    CHAR NodeDesc[64];
} IB_MODIFY_CA;

// ---- events -------------------------------------------------------------------------------------

// "CA", "CQ", "QP": whose event verb or callback delivers it. Those marked - are defined by the RFC
// and never raised by this device.
typedef enum _IB_ASYNC_EVENT {
    IbAeSqError = 1,      // - the send queue could not be accessed
    IbAeSqDrained,        // QP: SQD reached, every outstanding send is acknowledged
    IbAeRqError,          // - the receive queue could not be accessed
    IbAeCqError,          // CQ: overrun, or an entry could not be written
    IbAeQpFatal,          // QP: the queue pair broke in a way that no completion can tell
    IbAeQpComm,           // QP: first packet while still in RTR
    IbAeQpApm,            // QP: moved to the alternate path
    IbAeLocalFatal,       // CA: the device is dead
    IbAePkeyTrap,         // -
    IbAeQkeyTrap,         // -
    IbAeMkeyTrap,         // -
    IbAePortTrap,         // port: capabilities changed through ModifyPort
    IbAeSysimgGuidTrap,   // port: the system image GUID changed through ModifyCa
    IbAeBufOverrun,       // -
    IbAeLinkIntegrity,    // -
    IbAeFlowCtrlError,    // -
    IbAeBkeyTrap,         // -
    IbAeQpApmError,       // QP: a migration request of the peer was not accepted
    IbAeWqReqError,       // QP: the peer sent a request that its opcode or state forbids
    IbAeWqAccessError,    // QP: the peer's request violated protection
    IbAePortActive,       // port: link came up
    IbAePortDown,         // port: link went down
    IbAeClientReregister, // port: subscriptions with the subnet's managers are lost
    IbAeUnknown           // anything this list has no name for, e.g. a changed GID or P_Key table
} IB_ASYNC_EVENT;

// ---- work completions ---------------------------------------------------------------------------

typedef enum _IB_WC_STATUS {
    IbWcSuccess,
    IbWcLocalLenErr,
    IbWcLocalOpErr,
    IbWcLocalProtectionErr,
    IbWcWrFlushedErr,
    IbWcMwBindErr,
    IbWcRemAccessErr,
    IbWcRemOpErr,
    IbWcRnrRetryErr,
    IbWcTimeoutRetryErr,
    IbWcRemInvalidReqErr,
    IbWcUnmatchedResponse, // of an access layer above
    IbWcCanceled,          // of an access layer above
    IbWcUnknown            // VendorError holds the verbs status
} IB_WC_STATUS;

typedef enum _IB_OP_TYPE {
    IbSend,
    IbRdmaWrite,
    IbRdmaRead,
    IbInterlockedCompareExchange,
    IbInterlockedAdd,
    IbBindMw,
    IbRecv = (1 << 7),
    IbRecvRdmaWrite
} IB_OP_TYPE;

// (Type & IB_WC_RECV) tells a receive from a send (decision 19).
#define IB_WC_RECV IbRecv

enum IB_WC_FLAGS {
    IB_WC_FLAG_IMMEDIATE = (1 << 0),
    IB_WC_FLAG_GRH = (1 << 1), // the first 40 bytes of the buffer are the GRH
    IB_WC_FLAG_VENDOR_MASK = (int)0xFFFF0000
};

typedef struct DECLSPEC_ALIGN(8) _IB_WC {
    IB_QP_HANDLE64 hQp;
    UINT64 WrId;
    IB_WC_STATUS Status;
    IB_OP_TYPE Type;
    ULONG VendorError; // a reason number: `weft explain <number>`
    ULONG Length;
    ULONG Flags;
    ULONG ImmediateData;
    struct _WC_UD {
        ULONG RemoteQp;
        USHORT RemoteLid;
        USHORT PkeyIndex;
        UCHAR RemoteSl;
        UCHAR PathBits;
    } Ud;
} IB_WC;

// ---- work requests ------------------------------------------------------------------------------

// The RFC writes 0 << 1 for READ, which can neither be asked for nor refused (decision 1). A client
// that needs the literal value defines IB_AC_RDMA_READ_LITERAL; READ is then always granted.
enum IB_ACCESS_MASK {
#ifdef IB_AC_RDMA_READ_LITERAL
    IB_AC_RDMA_READ = 0,
#else
    IB_AC_RDMA_READ = (1 << 0),
#endif
    IB_AC_RDMA_WRITE = (1 << 1),
    IB_AC_ATOMIC = (1 << 2),
    IB_AC_LOCAL_WRITE = (1 << 3),
    IB_AC_MW_BIND = (1 << 4)
};

enum IB_WR_FLAGS {
    IB_WR_FLAG_IMMEDIATE = (1 << 0),
    IB_WR_FLAG_FENCE = (1 << 1),
    IB_WR_FLAG_SIGNALED = (1 << 2),
    IB_WR_FLAG_SOLICITED = (1 << 3),
    IB_WR_FLAG_INLINE = (1 << 4),
    IB_WR_FLAG_LOCAL = (1 << 5), // of an access layer above; ignored here
    IB_WR_FLAG_VENDOR_MASK = (int)0xFFFF0000
};

typedef struct DECLSPEC_ALIGN(8) _IB_SGE {
    VOID *__ptr64 Address;
    ULONG Length;
    ULONG LKey;
} IB_SGE;

// Sge is an array of pointers, as the RFC declares it (decision 3); weft_iba_chain_sge() fills it
// from a flat array. Type: IbSend to IbInterlockedAdd.
typedef struct DECLSPEC_ALIGN(8) _IB_SEND_WR {
    struct _IB_SEND_WR *__ptr64 pNext;
    UINT64 WrId;
    IB_OP_TYPE Type;
    ULONG Flags;
    ULONG ImmediateData;
    union _WR {
        struct _SEND_UD {
            IB_ADDR_HANDLE pAh;
            ULONG RemoteQpn;
            ULONG RemoteQkey;
            USHORT PKeyIndex;
        } Ud;
        struct _SEND_RDMA {
            VOID *__ptr64 Address;
            ULONG RKey;
        } Rdma;
        struct _SEND_COMP_XCHG {
            VOID *__ptr64 Address;
            UINT64 Exchange;
            UINT64 Comparand;
            ULONG RKey;
        } CompareExchange;
        struct _SEND_XCHG_ADD {
            VOID *__ptr64 Address;
            UINT64 Value;
            ULONG RKey;
        } ExchangeAdd;
    } u;
    ULONG SgeCount;
    IB_SGE *__ptr64 Sge[];
} IB_SEND_WR;

typedef struct DECLSPEC_ALIGN(8) _IB_RECV_WR {
    struct _IB_RECV_WR *__ptr64 pNext;
    UINT64 WrId;
    ULONG SgeCount;
    IB_SGE *__ptr64 Sge[];
} IB_RECV_WR;

// pMr names a region: an IB_MR*, or as the RFC declares the field, the address of an IB_MR_HANDLE
// (decision 6). Length 0 unbinds the window.
typedef struct DECLSPEC_ALIGN(8) _IB_BIND_WR {
    UINT64 WrId;
    VOID *pMr;
    ULONG Flags;
    ULONG AccessMask;
    VOID *__ptr64 Addr;
    ULONG Length;
} IB_BIND_WR;

// ---- address handles ----------------------------------------------------------------------------

enum IB_AH_FLAGS { IB_AH_FLAG_GRH = (1 << 0) };

// SGid must be in the port's GID table. PayloadLength and NextHdr are ignored (decision 22).
typedef struct DECLSPEC_ALIGN(8) _IB_AH_ATTR {
    UCHAR PortNumber;
    UCHAR SvcLvl;
    USHORT DLid;
    ULONG Flags;
    IB_GRH Grh;
    UCHAR StaticRate;
    UCHAR PathBits;
} IB_AH_ATTR;

// ---- queue pairs --------------------------------------------------------------------------------

typedef enum _IB_QP_TYPE {
    IbQpTypeReliableConn = 0, // the numbers of the first three are those of a CM request
    IbQpTypeUnreliableConn = 1,
    IbQpTypeUnreliableDgrm = 3,
    IbQpTypeQp0,
    IbQpTypeQp1,
    IbQpTypeMad, // of an access layer above, as the next two
    IbQpTypeQp0Alias,
    IbQpTypeQp1Alias
} IB_QP_TYPE;

typedef struct DECLSPEC_ALIGN(8) _IB_QP_CREATE {
    IB_QP_TYPE Type;
    ULONG SqDepth;
    ULONG RqDepth;
    ULONG SqSge;
    ULONG RqSge;
    ULONG SqMaxInline;
    IB_CQ_HANDLE pSendCq;
    IB_CQ_HANDLE pRecvCq;
    IB_SRQ_HANDLE pSrq; // NULL through a version 1 table
    BOOLEAN SqSignaled; // every send completes with an entry
} IB_QP_CREATE;

typedef enum _IB_QP_STATE {
    IbQpsReset,
    IbQpsInit,
    IbQpsRtr,
    IbQpsRts,
    IbQpsSqd,
    IbQpsSqdDraining, // this one and the next are only reported, never asked for (decision 10)
    IbQpsSqdDrained,
    IbQpsSqErr,
    IbQpsError
} IB_QP_STATE;

typedef enum _IB_APM_STATE { IbApmMigrated = 1, IbApmRearm, IbApmArmed } IB_APM_STATE;

// Bits of Opts: which of the optional fields count.
enum IB_QP_MOD_FLAGS {
    IB_MOD_QP_ALTERNATE_AV = (1 << 0),
    IB_MOD_QP_PKEY = (1 << 1),
    IB_MOD_QP_APM_STATE = (1 << 2),
    IB_MOD_QP_PRIMARY_AV = (1 << 3),
    IB_MOD_QP_RNR_NAK_TIMEOUT = (1 << 4),
    IB_MOD_QP_RESP_RES = (1 << 5),
    IB_MOD_QP_INIT_DEPTH = (1 << 6),
    IB_MOD_QP_PRIMARY_PORT = (1 << 7),
    IB_MOD_QP_ACCESS_CTRL = (1 << 8),
    IB_MOD_QP_QKEY = (1 << 9),
    IB_MOD_QP_SQ_DEPTH = (1 << 10),
    IB_MOD_QP_RQ_DEPTH = (1 << 11),
    IB_MOD_QP_CURRENT_STATE = (1 << 12),
    IB_MOD_QP_RETRY_CNT = (1 << 13),
    IB_MOD_QP_LOCAL_ACK_TIMEOUT = (1 << 14),
    IB_MOD_QP_RNR_RETRY_CNT = (1 << 15)
};

// state.Init, .rtr, .rts, .sqd go with ReqState IbQpsInit, IbQpsRtr, IbQpsRts, IbQpsSqd.
typedef struct DECLSPEC_ALIGN(8) _IB_QP_MODIFY {
    IB_QP_STATE ReqState;
    union _QpState {
        struct _QpInit {
            UCHAR PrimaryPort;
            ULONG Qkey; // UD
            USHORT PkeyIndex;
            ULONG AccessMask; // RC, UC
        } Init;
        // On UD nothing but Opts and what it names counts.
        struct _QpRtr {
            ULONG RqPsn;
            ULONG DestQp;
            IB_AH_ATTR PrimaryAh;
            UCHAR RespRes;       // RC
            UCHAR RnrNakTimeout; // RC
            ULONG Opts;
            IB_AH_ATTR AlternateAh;
            ULONG Qkey;
            USHORT PkeyIndex;
            ULONG AccessMask;
            ULONG SqDepth;
            ULONG RqDepth;
        } rtr;
        // From RTR: SqPsn and, on RC, RetryCnt to InitDepth always count. From RTS, SQD and SQE
        // only what Opts names does, and SqPsn never (decision 11).
        struct _QpRts {
            ULONG SqPsn;
            UCHAR RetryCnt;
            UCHAR RnrRetryCnt;
            UCHAR LocalAckTimeout;
            UCHAR InitDepth;
            ULONG Opts;
            UCHAR RnrNakTimeout;
            IB_QP_STATE CurrentState;
            ULONG Qkey;
            ULONG AccessMask;
            UCHAR RespRes;
            IB_AH_ATTR PrimaryAh;
            IB_AH_ATTR AlternateAh;
            ULONG SqDepth;
            ULONG RqDepth;
            IB_APM_STATE ApmState;
            UCHAR PrimaryPort;
            USHORT PkeyIndex;
        } rts;
        struct _QpSqd {
            BOOLEAN SqdEvent; // raise IbAeSqDrained when the send queue is drained
        } sqd;
    } state;
} IB_QP_MODIFY;

typedef struct DECLSPEC_ALIGN(8) _IB_QP_ATTR {
    ULONG AccessMask;
    USHORT PkeyIndex;
    UCHAR InitDepth;
    UCHAR RespRes;
    BOOLEAN SqSignaled;
    IB_QP_STATE State;
    ULONG DestQpNum;
    ULONG Qkey;
    ULONG SqPsn;
    ULONG RqPsn;
    UCHAR primary_port;
    UCHAR alternate_port;
    IB_AH_ATTR PrimaryAh;
    IB_AH_ATTR AlternateAh;
    IB_APM_STATE ApmState;
} IB_QP_ATTR;

#ifdef __cplusplus
}
#endif

#endif
