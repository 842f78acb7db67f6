// SPDX-License-Identifier: BSD-2-Clause
// Names of return codes, counters and resources.
#define CRAY_CONFIG_GHAL_ARIES // the array holds the longer list, whatever its reader was built
                               // with
#include <gni_pub.h>

#include <stddef.h>

// Clients print gni_err_str[rc] with any rc they got: one name for each.
const char *gni_err_str[] = {
    [GNI_RC_SUCCESS] = "GNI_RC_SUCCESS",
    [GNI_RC_NOT_DONE] = "GNI_RC_NOT_DONE",
    [GNI_RC_INVALID_PARAM] = "GNI_RC_INVALID_PARAM",
    [GNI_RC_ERROR_RESOURCE] = "GNI_RC_ERROR_RESOURCE",
    [GNI_RC_TIMEOUT] = "GNI_RC_TIMEOUT",
    [GNI_RC_PERMISSION_ERROR] = "GNI_RC_PERMISSION_ERROR",
    [GNI_RC_DESCRIPTOR_ERROR] = "GNI_RC_DESCRIPTOR_ERROR",
    [GNI_RC_ALIGNMENT_ERROR] = "GNI_RC_ALIGNMENT_ERROR",
    [GNI_RC_INVALID_STATE] = "GNI_RC_INVALID_STATE",
    [GNI_RC_NO_MATCH] = "GNI_RC_NO_MATCH",
    [GNI_RC_SIZE_ERROR] = "GNI_RC_SIZE_ERROR",
    [GNI_RC_TRANSACTION_ERROR] = "GNI_RC_TRANSACTION_ERROR",
    [GNI_RC_ILLEGAL_OP] = "GNI_RC_ILLEGAL_OP",
    [GNI_RC_ERROR_NOMEM] = "GNI_RC_ERROR_NOMEM",
};

const char *gni_statistic_str[] = {
    [GNI_STAT_SMSG_BUFF_CREDITS_STALL] = "SMSG_BUFF_CREDITS_STALL",
    [GNI_STAT_SMSG_DLA_STALL] = "SMSG_DLA_STALL",
    [GNI_STAT_SMSG_MBOX_CREDITS_STALL] = "SMSG_MBOX_CREDITS_STALL",
    [GNI_STAT_SMSG_REQ_STALL] = "SMSG_REQ_STALL",
    [GNI_STAT_SMSG_RETRANS_COUNT] = "SMSG_RETRANS_COUNT",
    [GNI_STAT_SMSG_RETRANS_DLA_COUNT] = "SMSG_RETRANS_DLA_COUNT",
    [GNI_STAT_SMSG_RETRANS_STALL] = "SMSG_RETRANS_STALL",
    [GNI_STAT_DLA_ALLOC_STATUS_STALL] = "DLA_ALLOC_STATUS_STALL",
    [GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT] = "DLA_ALLOC_STATUS_TIMEOUT",
    [GNI_STAT_DLA_BLOCK_ORPHANED] = "DLA_BLOCK_ORPHANED",
    [GNI_STAT_DLA_BLOCK_RETRANS_COUNT] = "DLA_BLOCK_RETRANS_COUNT",
    [GNI_STAT_DLA_FREE_BLOCKS_STALL] = "DLA_FREE_BLOCKS_STALL",
    [GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL] = "DLA_FREE_FMAD_BLOCKS_STALL",
    [GNI_STAT_DLA_HIGH_RETRANS_COUNT] = "DLA_HIGH_RETRANS_COUNT",
    [GNI_STAT_DLA_OVERFLOW_RESEND] = "DLA_OVERFLOW_RESEND",
    [GNI_STAT_DLA_RETRANS_COUNT] = "DLA_RETRANS_COUNT",
    [GNI_STAT_DLA_TOTAL_RETRANS_COUNT] = "DLA_TOTAL_RETRANS_COUNT",
    [GNI_STAT_FLBTE_TXD_CORRUPT] = "FLBTE_TXD_CORRUPT",
    [GNI_STAT_FLBTE_TXD_NONE] = "FLBTE_TXD_NONE",
    [GNI_STAT_FMA_LAUNCH_COUNT] = "FMA_LAUNCH_COUNT",
    [GNI_STAT_MR_MULTI_PAGESIZE] = "MR_MULTI_PAGESIZE",
};

static const char *const dev_res[GNI_DEV_RES_LAST] = {
    [GNI_DEV_RES_MDD] = "MDD", [GNI_DEV_RES_MRT] = "MRT", [GNI_DEV_RES_CQ] = "CQ",
    [GNI_DEV_RES_FMA] = "FMA", [GNI_DEV_RES_CE] = "CE",   [GNI_DEV_RES_DLA] = "DLA",
    [GNI_DEV_RES_TCR] = "TCR", [GNI_DEV_RES_DVA] = "DVA",
};

static const char *const job_res[GNI_JOB_RES_LAST] = {
    [GNI_JOB_RES_MDD] = "MDD",         [GNI_JOB_RES_MRT] = "MRT",
    [GNI_JOB_RES_IOMMU] = "IOMMU",     [GNI_JOB_RES_GART] = "GART",
    [GNI_JOB_RES_CQ] = "CQ",           [GNI_JOB_RES_FMA] = "FMA",
    [GNI_JOB_RES_RDMA] = "RDMA",       [GNI_JOB_RES_CE] = "CE",
    [GNI_JOB_RES_DLA] = "DLA",         [GNI_JOB_RES_SFMA] = "SFMA",
    [GNI_JOB_RES_DIRECT] = "DIRECT",   [GNI_JOB_RES_PCI_IOMMU] = "PCI_IOMMU",
    [GNI_JOB_RES_NONVMDH] = "NONVMDH",
};

uint32_t gni_dev_res_valid(gni_dev_res_t res)
{
    return res > GNI_DEV_RES_FIRST && res < GNI_DEV_RES_LAST;
}

const char *gni_dev_res_to_str(gni_dev_res_t res)
{
    return gni_dev_res_valid(res) ? dev_res[res] : "UNKNOWN";
}

uint32_t gni_job_res_valid(gni_job_res_t res)
{
    return res > GNI_JOB_RES_FIRST && res < GNI_JOB_RES_LAST;
}

const char *gni_job_res_to_str(gni_job_res_t res)
{
    return gni_job_res_valid(res) ? job_res[res] : "UNKNOWN";
}
