/** The programs whose models can be imported. Their directories are described in `foreign-models.ts`. */

export const FOREIGN_TOOLS = ['ollama', 'lm-studio', 'llama.cpp', 'huggingface'] as const;
export type ForeignTool = (typeof FOREIGN_TOOLS)[number];
