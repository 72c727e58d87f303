// The joiner's bytes.
        .section .rodata
        .globl belljar_joiner_begin, belljar_joiner_end
        .balign 16
belljar_joiner_begin:
        .incbin JOINER_LIBRARY
belljar_joiner_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
