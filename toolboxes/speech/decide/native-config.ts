/** The configuration of sherpa-onnx-node for a model. Pure. */
import type { EngineConfig } from './describe-model.ts';

export interface ConfigOptions {
  /** Turns the name of a file of the model into its path. */
  resolve(name: string): string;
  readonly threads: number;
  /** A code such as `en` or `en-us`; empty lets the model decide. */
  readonly language: string;
  readonly task: string;
}

/** Languages that the lexicons of Kokoro cover; espeak-ng pronounces the others. */
const LEXICON_LANGUAGES = ['en-us', 'en-gb', 'zh', ''];
/** Names of espeak-ng, whose voices have the names of its files. */
const ESPEAK_NAMES: Readonly<Record<string, string>> = { '': 'en-us', 'en-gb': 'en', zh: 'cmn' };
const LISTENER_FEATURES = { sampleRate: 16_000, featureDim: 80 };

export function nativeConfig(engine: EngineConfig, options: ConfigOptions): object {
  const { resolve, threads, language, task } = options;
  if (engine.kind === 'whisper') throw new TypeError('Give models of whisper.cpp to its own server: the library does not load them');
  const files = Object.fromEntries(Object.entries(engine.files).map(([role, name]) => [role, resolve(name)]));
  if (engine.kind === 'listener') {
    const spoken = engine.role === 'whisper' ? { language, task } : {};
    const more = engine.role === 'senseVoice' ? { language: 'auto', useInverseTextNormalization: 1 } : {};
    return {
      featConfig: LISTENER_FEATURES,
      modelConfig: {
        [engine.role]: { ...files, ...spoken, ...more },
        tokens: resolve(engine.options['tokens'] ?? ''),
        numThreads: threads,
        provider: 'cpu',
        debug: 0,
        ...(engine.modelType === '' ? {} : { modelType: engine.modelType }),
      },
    };
  }
  const isMultilingual = engine.options['multilingual'] === 'yes';
  const pronunciation = isMultilingual ? multilingual(engine.options['lexicon'] ?? '', options) : plain(engine, resolve);
  // Those of a model of several languages are for Chinese, and would make "三" of the "3" in an English sentence.
  const rules = isMultilingual && language !== 'zh' ? '' : paths(engine.rules, resolve);
  return {
    model: { [engine.role]: { ...files, ...pronunciation }, numThreads: threads, provider: 'cpu', debug: 0 },
    maxNumSentences: 1,
    ...(rules === '' ? {} : { ruleFsts: rules }),
  };
}

function plain(engine: Extract<EngineConfig, { readonly kind: 'speaker' }>, resolve: ConfigOptions['resolve']): object {
  const lexicon = engine.options['lexicon'] ?? '';
  return lexicon === '' ? {} : { lexicon: paths(lexicon.split(','), resolve) };
}

/** The library ends its process if such a model gets neither lexicons nor a language. */
function multilingual(lexicons: string, { resolve, language }: ConfigOptions): object {
  const british = language === 'en-gb';
  const fitting = lexicons.split(',').filter((name) => name !== '' && !name.includes(british ? '-us-' : '-gb-'));
  if (fitting.length > 0 && LEXICON_LANGUAGES.includes(language)) return { lexicon: paths(fitting, resolve) };
  return { lang: ESPEAK_NAMES[language] ?? language };
}

const paths = (names: readonly string[], resolve: ConfigOptions['resolve']): string => names.map(resolve).join(',');
