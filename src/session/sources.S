// The texts of the programs that run inside a session's jar.
        .section .rodata
        .globl belljar_worker_begin, belljar_worker_end
        .globl belljar_worker_display_begin, belljar_worker_display_end
        .globl belljar_warm_begin, belljar_warm_end
belljar_worker_begin:
        .incbin WORKER
belljar_worker_end:
        .byte 0
belljar_worker_display_begin:
        .incbin WORKER_DISPLAY
belljar_worker_display_end:
        .byte 0
belljar_warm_begin:
        .incbin WARM
belljar_warm_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
