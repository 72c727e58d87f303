// The text of warm.py.
        .section .rodata
        .globl belljar_warm_begin, belljar_warm_end
belljar_warm_begin:
        .incbin WARM_SOURCE
belljar_warm_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
