"""SGLang: a fraction of the memory free before loading, pools of tokens, states and windows."""
