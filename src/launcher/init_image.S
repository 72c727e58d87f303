// The init program's bytes.
        .section .rodata
        .globl belljar_init_begin, belljar_init_end
        .balign 16
belljar_init_begin:
        .incbin INIT_PROGRAM
belljar_init_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
