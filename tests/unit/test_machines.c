/* Every pair of state and event of the state machines of an agent and of the client of its link: the tables
 * once more, written down by hand. What the filled cells do is shown by each module's own test, with real
 * parts. */
#include "agent/agent.h"
#include "agent/probe/http_client.h"
#include "agent/probe/probe.h"
#include "agent/process/supervisor.h"
#include "agent/process/tree.h"
#include "agent/task/task_inner.h"
#include "agent/uplink/uplink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *state;
    const char *cells; /* a letter for each event, '.' where it is refused */
};

/* Beyond the table nothing is permitted either. */
static void expect(bool (*permits)(unsigned state, unsigned event), const struct row *rows, size_t states)
{
    size_t events = strlen(rows[0].cells);
    for (unsigned s = 0; s <= states; s++) {
        for (unsigned e = 0; e <= events; e++) {
            bool expected = s < states && e < events && rows[s].cells[e] != '.';
            if (permits(s, e) != expected)
                fail_msg("state %u (%s), event %u: %s", s, s < states ? rows[s].state : "none", e,
                         expected ? "refused" : "permitted");
        }
    }
}

static void test_uplink(void **state)
{
    (void)state;
    /* Up, Lost, Refused, Due, Taken, Failed, Close, drAined */
    static const struct row rows[] = {
        {"dialling", "ULRD..C."}, {"down", "ULRD..C."},     {"ready", ".L.D..C."},
        {"pushing", ".L.DTFC."},  {"draining", ".L..TF.A"}, {"closing", "........"},
    };
    expect(uplink_permits, rows, ARRAY_LEN(rows));
}

static void test_agent(void **state)
{
    (void)state;
    /* Open, Close, Work, Lapse, End, closeD */
    static const struct row rows[] = {
        {"free", "OCW.E."},   {"held", "OCWLE."},  {"closing", "OCW.ED"},
        {"ending", "OCW..D"}, {"ended", "OCW..."},
    };
    expect(agent_permits, rows, ARRAY_LEN(rows));
}

static void test_task_proc(void **state)
{
    (void)state;
    /* Spawned, Refused, rEady, Late, sTopped, eXited, lOst */
    static const struct row rows[] = {
        {"starting", "SR..T.O"}, {"recalled", "SR..T.O"}, {"probing", "..ELTXO"}, {"building", "...LTXO"},
        {"running", "....TXO"},  {"ending", "....TXO"},   {"ended", "....T.O"},
    };
    expect(task_proc_permits, rows, ARRAY_LEN(rows));
}

static void test_task_load(void **state)
{
    (void)state;
    /* Begin, Refused, Late, Stopped, eXited, lOst */
    static const struct row rows[] = {
        {"new", "B....."},    {"proving", ".RLSXO"}, {"loading", ".RLSXO"},
        {"ending", ".RLSXO"}, {"ended", "......"},
    };
    expect(task_load_permits, rows, ARRAY_LEN(rows));
}

static void test_process(void **state)
{
    (void)state;
    /* Nonsense, Started, Refused, Exited, Talk, Unsent, Gone */
    static const struct row rows[] = {
        {"starting", ".SR.TUG"}, {"running", "...ET.G"}, {"ended", "....T.G"}, {"refused", "....T.G"}};
    expect(tree_permits, rows, ARRAY_LEN(rows));
    /* Lose, Empty, Close */
    static const struct row set_rows[] = {
        {"open", "LEC"}, {"lost", "LEC"}, {"dead", ".EC"}, {"closing", "LE."}, {"closed", "..."}};
    expect(process_permits, set_rows, ARRAY_LEN(set_rows));
}

static void test_supervisor(void **state)
{
    (void)state;
    /* stArted, Refused, Stop, First ended, aLl ended, Grace over, Cut */
    static const struct row rows[] = {{"idle", "ARS...C"},
                                      {"running", "..SF..C"},
                                      {"stopping", "..SFLGC"},
                                      {"killing", "..SFLGC"},
                                      {"gone", "..S...C"}};
    expect(supervisor_permits, rows, ARRAY_LEN(rows));
}

static void test_probe(void **state)
{
    (void)state;
    /* Answered, Unanswered, Due, Cancel */
    static const struct row rows[] = {{"trying", "AU.C"}, {"paused", "..DC"}, {"ended", "AU.C"}};
    expect(probe_permits, rows, ARRAY_LEN(rows));
    /* Begin, Resolved, Connected, reFused, cLosed, End */
    static const struct row client_rows[] = {{"new", "B....."},        {"resolving", ".R...E"},
                                             {"connecting", "..CF.E"}, {"closing", "....LE"},
                                             {"talking", ".....E"},    {"ended", ".RCFL."}};
    expect(http_client_permits, client_rows, ARRAY_LEN(client_rows));
}

static void test_link_client(void **state)
{
    (void)state;
    /* Due, Welcome, Lost, Refuse, Close */
    static const struct row rows[] = {{"pausing", "D...C"},
                                      {"dialling", ".WLRC"},
                                      {"up", "..L.C"},
                                      {"refused", "....C"},
                                      {"closing", "..L.."}};
    expect(link_client_permits, rows, ARRAY_LEN(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uplink),    cmocka_unit_test(test_agent),
        cmocka_unit_test(test_task_proc), cmocka_unit_test(test_task_load),
        cmocka_unit_test(test_process),   cmocka_unit_test(test_supervisor),
        cmocka_unit_test(test_probe),     cmocka_unit_test(test_link_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
