#ifndef COMMON_MACHINE_H
#define COMMON_MACHINE_H
/*
 * The one form of our state machines. Owns nothing; any thread.
 *
 *   #define STATE_LIST(X) X(IDLE) X(RUNNING)
 *   #define EVENT_LIST(X) X(START) X(STOP)
 *   enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
 *   enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };
 *   static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct thing *) = {
 *       [STATE_IDLE] = {ON(START, do_start)},
 *       [STATE_RUNNING] = {ON(START, keep), ON(STOP, do_stop)},
 *   };
 *
 * A handler does what the event asks for and returns the next state; it may not bring the machine another
 * event. handle() alone assigns the state, and traces the change. An empty cell is refused: with must() where
 * only our own callbacks could bring the event. thing_permits(state, event) shows the table to the test of
 * every pair.
 */
#define MACHINE_STATE(name) STATE_##name,
#define MACHINE_EVENT(name) EVENT_##name,
#define MACHINE_NAME(name)  #name,

/* A cell of the table. */
#define ON(event, handler) [EVENT_##event] = handler

#endif
