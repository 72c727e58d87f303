// The functions that the Python package calls (ctypes), and all that its library shows.
//
// Requests and answers are JSON; what is bytes stays bytes. An answer is memory that
// belljar_py_free gives back. No function calls Python, ever: what takes time is begun, tells
// by a descriptor that there is news, and is asked for it. So no thread of ours needs the
// interpreter's lock, and nothing here cares whether the interpreter is about to end.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

void belljar_py_free(void* answer);

// What there is to know: {"about": "keys" | "plan" | "doctor" | "tools" | "version", ...}.
// The answer is {"error": ...} or what was asked for.
void* belljar_py_ask(const char* request, size_t size, size_t* answer_size);

// ---- one command ----------------------------------------------------------------

// Starts it. It is handed over through `run` and not returned: a signal's exception, which may
// come between a return and what is done with it, must not lose it. nullptr is returned, or why
// it was not started. `input` is what it reads.
void* belljar_py_run_start(const char* request, size_t size, const char* input, size_t input_size,
                           void** run, size_t* error_size);
// 1: it has ended; 0: it still runs after that time; -1: it is lost, and the outcome says why.
int belljar_py_run_wait(void* run, int milliseconds);
// After it has ended: the outcome, or the error; and what it wrote, which lasts until the end.
void* belljar_py_run_outcome(void* run, size_t* answer_size, const char** out, size_t* out_size,
                             const char** err, size_t* err_size);
// Ends it if it still runs, and forgets it.
void belljar_py_run_end(void* run);

// ---- sessions -------------------------------------------------------------------

// As with a run: handed over through `engine`.
void* belljar_py_engine_start(const char* request, size_t size, void** engine, size_t* error_size);
// Ends everything of it; calls that wait are answered. Blocks until nothing is left.
void belljar_py_engine_end(void* engine);

// Begins a call. It may outlive the engine, and then says that it has ended.
void belljar_py_call_begin(void* engine, const char* request, size_t size, const char* data,
                           size_t data_size, void** call);
// Readable when there is news.
int belljar_py_call_fd(void* call);
// The next of it, or nullptr. `kind` is o or e (output), a (an approval is asked for),
// b (bytes that were asked for), d (done: the answer, the last).
void* belljar_py_call_next(void* call, int* kind, size_t* size);
// A decision about the approval: {"approval_id", "decision", "message", ...}.
void belljar_py_call_decide(void* call, const char* decision, size_t size);
// Asks it to stop. Nobody needs to wait for the answer.
void belljar_py_call_cancel(void* call);
void belljar_py_call_end(void* call);

}  // extern "C"
