// hnswlib's own headers with the policy test compiled into the search loop, called through a C interface.
// The test is a functor: the loop calls it for every candidate before the result heap is updated.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "hnswlib/hnswlib.h"

namespace {

struct Peer {
    hnswlib::InnerProductSpace space;
    hnswlib::HierarchicalNSW<float> graph;
    Peer(const char *path, size_t dim) : space(dim), graph(&space, path) {}
};

// Row i has label i.
struct Policy final : hnswlib::BaseFilterFunctor {
    const uint32_t *words, *public_at, *entities;
    const uint8_t *denied;
    uint32_t mask, value, as_of;
    bool operator()(hnswlib::labeltype row) override {
        if ((words[row] & mask) != value) return false;
        if (!denied) return true;
        return public_at[row] <= as_of && !denied[entities[row]];
    }
};

int64_t search(const Peer &peer, const float *query, size_t k, Policy *policy, int64_t *ids) {
    auto found = peer.graph.searchKnn(query, k, policy);
    const auto count = static_cast<int64_t>(found.size());
    for (int64_t i = count; i-- > 0; found.pop()) ids[i] = static_cast<int64_t>(found.top().second);
    return count;
}

}  // namespace

extern "C" {

void *peer_load(const char *path, size_t dim) {
    try {
        return new Peer(path, dim);
    } catch (...) {
        return nullptr;
    }
}

void peer_free(void *peer) { delete static_cast<Peer *>(peer); }

// Fills `ids`, k a query and nearest first, -1 beyond what was found; returns how many the first query found.
// `denied_count` < 0: words alone are tested. `open`: no test at all, as one would search without a policy.
int64_t peer_search(void *handle, const float *queries, size_t query_count, size_t threads, size_t k,
                    size_t ef, int open, uint32_t required, uint32_t forbidden, const uint32_t *words,
                    const uint32_t *public_at, const uint32_t *entities, size_t entity_count,
                    uint32_t as_of, const uint32_t *denied, int64_t denied_count, int64_t *ids) {
    auto *peer = static_cast<Peer *>(handle);
    thread_local std::vector<uint8_t> table;
    Policy policy;
    policy.words = words;
    policy.public_at = public_at;
    policy.entities = entities;
    policy.mask = required | forbidden;
    policy.value = required;
    policy.as_of = as_of;
    policy.denied = nullptr;
    if (denied_count >= 0) {
        table.assign(entity_count, 0);
        for (int64_t i = 0; i < denied_count; i++)
            if (denied[i] < entity_count) table[denied[i]] = 1;
        policy.denied = table.data();
    }
    peer->graph.setEf(ef);
    Policy *test = open ? nullptr : &policy;
    if (query_count == 1) return search(*peer, queries, k, test, ids);

    const size_t dim = *static_cast<size_t *>(peer->space.get_dist_func_param());
    std::atomic<size_t> next{0};
    auto work = [&] {
        for (size_t i; (i = next++) < query_count;) {
            int64_t *out = ids + i * k;
            const int64_t found = search(*peer, queries + i * dim, k, test, out);
            std::fill(out + found, out + k, -1);
        }
    };
    std::vector<std::thread> crew;
    for (size_t i = 1; i < threads; i++) crew.emplace_back(work);
    work();
    for (auto &one : crew) one.join();
    return static_cast<int64_t>(k);
}

}  // extern "C"
