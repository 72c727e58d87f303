// The text of worker.py.
        .section .rodata
        .globl belljar_worker_begin, belljar_worker_end
belljar_worker_begin:
        .incbin WORKER_SOURCE
belljar_worker_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
