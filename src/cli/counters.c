// SPDX-License-Identifier: BSD-2-Clause
#include "cli/counters.h"

static uint64_t get_port_xmit_packets(const struct wf_hca *h)
{
    return h->tx_packets;
}

static uint64_t get_port_rcv_packets(const struct wf_hca *h)
{
    return h->rx_packets;
}

static uint64_t get_port_xmit_bytes(const struct wf_hca *h)
{
    return h->tx_bytes;
}

static uint64_t get_port_rcv_bytes(const struct wf_hca *h)
{
    return h->rx_bytes;
}

static uint64_t get_bad_pkey(const struct wf_hca *h)
{
    return h->pkey_violations;
}

static uint64_t get_bad_qkey(const struct wf_hca *h)
{
    return h->qkey_violations;
}

static uint64_t get_rx_write_requests(const struct wf_hca *h)
{
    return h->env.counters.rx_write_requests;
}

static uint64_t get_rx_read_requests(const struct wf_hca *h)
{
    return h->env.counters.rx_read_requests;
}

static uint64_t get_rx_atomic_requests(const struct wf_hca *h)
{
    return h->env.counters.rx_atomic_requests;
}

static uint64_t get_out_of_buffer(const struct wf_hca *h)
{
    return h->env.counters.out_of_buffer;
}

static uint64_t get_out_of_sequence(const struct wf_hca *h)
{
    return h->env.counters.out_of_sequence;
}

static uint64_t get_duplicate_request(const struct wf_hca *h)
{
    return h->env.counters.duplicate_request;
}

static uint64_t get_rnr_nak_retry_err(const struct wf_hca *h)
{
    return h->env.counters.rnr_nak_retry_err;
}

static uint64_t get_packet_seq_err(const struct wf_hca *h)
{
    return h->env.counters.packet_seq_err;
}

static uint64_t get_implied_nak_seq_err(const struct wf_hca *h)
{
    return h->env.counters.implied_nak_seq_err;
}

static uint64_t get_local_ack_timeout_err(const struct wf_hca *h)
{
    return h->env.counters.local_ack_timeout_err;
}

static uint64_t get_req_cqe_error(const struct wf_hca *h)
{
    return h->env.counters.req_cqe_error;
}

static uint64_t get_req_cqe_flush_error(const struct wf_hca *h)
{
    return h->env.counters.req_cqe_flush_error;
}

static uint64_t get_resp_cqe_error(const struct wf_hca *h)
{
    return h->env.counters.resp_cqe_error;
}

static uint64_t get_resp_cqe_flush_error(const struct wf_hca *h)
{
    return h->env.counters.resp_cqe_flush_error;
}

static uint64_t get_req_remote_access_errors(const struct wf_hca *h)
{
    return h->env.counters.req_remote_access_errors;
}

static uint64_t get_req_remote_invalid_request(const struct wf_hca *h)
{
    return h->env.counters.req_remote_invalid_request;
}

static uint64_t get_resp_remote_access_errors(const struct wf_hca *h)
{
    return h->env.counters.resp_remote_access_errors;
}

static uint64_t get_resp_local_length_error(const struct wf_hca *h)
{
    return h->env.counters.resp_local_length_error;
}

static uint64_t get_roce_adp_retrans(const struct wf_hca *h)
{
    return h->env.counters.roce_adp_retrans;
}

const struct cli_counter cli_counters[] = {
    {"port_xmit_packets", "packets sent, on all paths", get_port_xmit_packets},
    {"port_rcv_packets", "packets received, on all paths", get_port_rcv_packets},
    {"port_xmit_bytes", "payload bytes sent", get_port_xmit_bytes},
    {"port_rcv_bytes", "payload bytes received", get_port_rcv_bytes},
    {"bad_pkey", "packets of another partition", get_bad_pkey},
    {"bad_qkey", "datagrams with another Q_Key", get_bad_qkey},
    {"rx_write_requests", "RDMA WRITE requests received", get_rx_write_requests},
    {"rx_read_requests", "RDMA READ requests received", get_rx_read_requests},
    {"rx_atomic_requests", "atomic requests received", get_rx_atomic_requests},
    {"out_of_buffer", "requests that found no receive posted", get_out_of_buffer},
    {"out_of_sequence", "packets that came too early: one before them is missing",
     get_out_of_sequence},
    {"duplicate_request", "requests that came again", get_duplicate_request},
    {"rnr_nak_retry_err", "RNR NAKs received", get_rnr_nak_retry_err},
    {"packet_seq_err", "sequence NAKs received", get_packet_seq_err},
    {"implied_nak_seq_err", "answers that showed an earlier one is lost", get_implied_nak_seq_err},
    {"local_ack_timeout_err", "times that no answer came in time", get_local_ack_timeout_err},
    {"req_cqe_error", "sends that ended in an error", get_req_cqe_error},
    {"req_cqe_flush_error", "sends that were flushed", get_req_cqe_flush_error},
    {"resp_cqe_error", "receives that ended in an error", get_resp_cqe_error},
    {"resp_cqe_flush_error", "receives that were flushed", get_resp_cqe_flush_error},
    {"req_remote_access_errors", "requests refused by the peer for access",
     get_req_remote_access_errors},
    {"req_remote_invalid_request", "requests refused by the peer as invalid",
     get_req_remote_invalid_request},
    {"resp_remote_access_errors", "requests of peers refused for access",
     get_resp_remote_access_errors},
    {"resp_local_length_error", "messages longer than their receive", get_resp_local_length_error},
    {"roce_adp_retrans", "times that packets were sent again", get_roce_adp_retrans},
    {0},
};
