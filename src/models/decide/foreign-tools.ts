/** The programs whose models can be imported. Without imports, because svcctl loads it for `--help`. */
export const FOREIGN_TOOLS = ['ollama', 'lm-studio', 'llama.cpp', 'huggingface'] as const;
export type ForeignTool = (typeof FOREIGN_TOOLS)[number];
