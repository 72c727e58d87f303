#pragma once
#include_next <fcntl.h>
#define O_EVTONLY 0x00008000
#define F_GETPATH 50
#define F_SETNOSIGPIPE 73
