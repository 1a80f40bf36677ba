/**
 * Types for the part of node-llama-cpp that the engine uses. Its own types are not available, because the package is installed on demand
 * and outside this checkout. These match the version that is pinned in `package.json`.
 */

/** The number of a token in the vocabulary of the model. */
export type Token = number;

export interface EvaluateOptions {
  readonly temperature?: number;
  readonly minP?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly repeatPenalty?: { readonly punishTokens: () => Token[]; readonly penalty: number };
  readonly yieldEogToken?: boolean;
}

export interface NativeSequence {
  readonly nextTokenIndex: number;
  readonly contextSize: number;
  adaptStateToTokens(tokens: Token[], allowShift: boolean): Promise<void>;
  clearHistory(): Promise<void>;
  evaluate(tokens: Token[], options: EvaluateOptions): AsyncGenerator<Token, void, undefined>;
}

export interface NativeContext {
  readonly contextSize: number;
  getSequence(): NativeSequence;
}

export interface NativeEmbedder {
  getEmbeddingFor(input: Token[]): Promise<{ readonly vector: readonly number[] }>;
  calculateInputLength(input: Token[]): number;
}

export interface NativeRanker {
  rank(query: string, document: string): Promise<number>;
}

export interface NativeModel {
  readonly trainContextSize: number;
  readonly fileInfo: {
    readonly metadata: {
      readonly general: { readonly architecture: string };
      readonly tokenizer?: { readonly chat_template?: unknown };
      readonly [section: string]: unknown;
    };
  };
  readonly tokens: {
    readonly bos: Token | null;
    readonly bosString: string | null;
    readonly eosString: string | null;
    readonly shouldPrependBosToken: boolean;
  };
  tokenize(text: string, specialTokens: boolean, options?: 'trimLeadingSpace'): Token[];
  detokenize(tokens: readonly Token[], specialTokens: boolean, lastTokens: readonly Token[]): string;
  isEogToken(token: Token): boolean;
  createContext(options: { sequences: number; contextSize: number; batchSize?: number; threads: number }): Promise<NativeContext>;
  createEmbeddingContext(options: { contextSize: number; batchSize: number; threads: number }): Promise<NativeEmbedder>;
  createRankingContext(options: { contextSize: number; batchSize: number; threads: number }): Promise<NativeRanker>;
}

export interface Native {
  loadModel(options: { modelPath: string; gpuLayers?: number; metadataOverrides?: object }): Promise<NativeModel>;
}
