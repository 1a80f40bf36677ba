/** Provider kinds with their backends and capabilities. Specs are checked against them without loading a provider. */

export const BACKENDS = ['vulkan', 'rocm', 'cuda', 'cpu', 'npu'] as const;
export type Backend = (typeof BACKENDS)[number];

/** Kinds of requests; a slot serves one or more of them. */
export const CAPABILITIES = ['chat', 'completion', 'embedding', 'rerank', 'transcription', 'translation', 'speech', 'image'] as const;
export type Capability = (typeof CAPABILITIES)[number];

interface ProviderKindFacts {
  readonly backends: readonly Backend[];
  readonly defaultBackend: Backend;
  readonly serves: readonly Capability[];
  /** Its servers can be told the keys of `model-options.ts`. */
  readonly expresses?: true;
}

export const PROVIDER_KINDS = {
  gguf: {
    backends: ['vulkan', 'rocm', 'cuda', 'cpu'],
    defaultBackend: 'vulkan',
    serves: ['chat', 'completion', 'embedding', 'rerank'],
    expresses: true,
  },
  npu: { backends: ['npu'], defaultBackend: 'npu', serves: ['chat', 'embedding', 'transcription'] },
  stt: { backends: ['cpu'], defaultBackend: 'cpu', serves: ['transcription', 'translation'] },
  tts: { backends: ['cpu', 'vulkan'], defaultBackend: 'cpu', serves: ['speech'] },
  image: { backends: ['rocm', 'cuda'], defaultBackend: 'rocm', serves: ['image'] },
  /** Another machine computes. */
  remote: { backends: ['cpu'], defaultBackend: 'cpu', serves: CAPABILITIES },
} as const satisfies Record<string, ProviderKindFacts>;

export type BuiltInKind = keyof typeof PROVIDER_KINDS;

/** A built-in kind, or the name of a declared engine. */
export type ProviderKind = string;

/** Kinds with a server of their own. */
export const PROVIDER_KIND_NAMES = ['gguf', 'npu', 'stt', 'tts', 'image'] as const satisfies readonly BuiltInKind[];

export const isBuiltInKind = (kind: string): kind is BuiltInKind => Object.hasOwn(PROVIDER_KINDS, kind);

/** What any engine may be, until its definition is known. */
const DECLARED: ProviderKindFacts = { backends: BACKENDS, defaultBackend: 'cpu', serves: [] };

export const kindFacts = (kind: ProviderKind): ProviderKindFacts => (isBuiltInKind(kind) ? PROVIDER_KINDS[kind] : DECLARED);

interface Serving {
  readonly provider: ProviderKind;
  readonly engine?: Pick<ProviderKindFacts, 'serves'>;
  readonly remote?: Pick<ProviderKindFacts, 'serves'>;
}

/** What a slot may serve, before its model is known. */
export const servesOf = ({ provider, engine, remote }: Serving): readonly Capability[] => (remote ?? engine ?? kindFacts(provider)).serves;

/** The provider of a built-in slot that does not name one. */
export const DEFAULT_PROVIDER_OF_SLOT: Readonly<Record<string, BuiltInKind>> = {
  primary: 'gguf',
  embed: 'gguf',
  stt: 'stt',
  tts: 'tts',
  img: 'image',
};

export const BUILT_IN_SLOTS = Object.keys(DEFAULT_PROVIDER_OF_SLOT);

/** The provider that serves the models of each kind, unless an entry names another one. */
export const PROVIDER_OF_MODEL_KIND = {
  chat: 'gguf',
  coder: 'gguf',
  vision: 'gguf',
  embed: 'gguf',
  rerank: 'gguf',
  transcription: 'stt',
  speech: 'tts',
  image: 'image',
} as const satisfies Record<string, BuiltInKind>;

export type ModelKind = keyof typeof PROVIDER_OF_MODEL_KIND;

export const MODEL_KINDS = Object.keys(PROVIDER_OF_MODEL_KIND).filter((key): key is ModelKind => key in PROVIDER_OF_MODEL_KIND);

/** Features a request may need beyond the model's kind: tool calls, reasoning, image input. */
export const MODEL_ABILITIES = ['tools', 'thinking', 'vision', 'audio'] as const;
export type ModelAbility = (typeof MODEL_ABILITIES)[number];

/** What chats of a slot may use: of its model, and of its server. */
export const CHAT_ABILITIES = [...MODEL_ABILITIES, 'structured_output'] as const;
/** Absent: unknown. */
export type ChatAbilities = Readonly<Partial<Record<(typeof CHAT_ABILITIES)[number], boolean | undefined>>>;
