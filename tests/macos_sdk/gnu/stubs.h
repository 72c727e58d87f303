// Empty: this machine's C headers look here for what another processor lacks.
