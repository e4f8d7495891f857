#include "side.h"

static void ping(Pair pair) {
    fill(pair.client, SEND_AT, 1000, 1);
    CHECK_OK(post(
        pair.server,
        (Work){.operation = pair.server->srq ? SRQ_RECEIVE : RECEIVE, .at = RECV_AT, .length = 2000, .cookie = 7}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .at = SEND_AT, .length = 1000, .cookie = 8}));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 7).transfered_length, 1000);
    EXPECT_DONE(pair.client, 8);
    CHECK(filled(pair.server, RECV_AT, 1000, 1));
    CHECK_OK(post(pair.client,
                  (Work){.operation = WRITE, .at = SEND_AT, .to = RECV_AT + 4096, .length = 1000, .cookie = 9}));
    EXPECT_DONE(pair.client, 9);
    CHECK_OK(post(pair.client,
                  (Work){.operation = READ, .at = RECV_AT + 8192, .to = RECV_AT + 4096, .length = 1000, .cookie = 10}));
    EXPECT_DONE(pair.client, 10);
    CHECK(filled(pair.client, RECV_AT + 8192, 1000, 1));
    tell(pair.client, pair.server);
    expect_nothing(pair.client);
    pair_close(&pair);
}

TEST(two_processes) { ping(connected_pair((Options){0})); }
TEST(here) { ping(connected_pair_here((Options){0})); }
TEST(srq) { ping(connected_pair((Options){.srq = true})); }
TEST(one_evd) {
    Pair pair = connected_pair((Options){.one_evd = true});
    pair_close(&pair);
}
