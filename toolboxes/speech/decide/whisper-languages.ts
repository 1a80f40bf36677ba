/** The languages of Whisper, as codes. https://github.com/openai/whisper/blob/main/whisper/tokenizer.py. Pure. */

export const WHISPER_LANGUAGES: readonly string[] = (
  'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is ' +
  'hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue'
).split(' ');

/** Names that whisper.cpp writes otherwise than the Unicode standard. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  myanmar: 'my',
  'haitian creole': 'ht',
  tagalog: 'tl',
  javanese: 'jw',
  nynorsk: 'nn',
};

/** The code of a language that whisper.cpp names in English, such as "german"; the name itself if it is not known. */
export function codeOfLanguage(name: string): string {
  const wanted = name.toLowerCase();
  if (WHISPER_LANGUAGES.includes(wanted)) return wanted;
  const names = new Intl.DisplayNames(['en'], { type: 'language' });
  return OTHER_NAMES[wanted] ?? WHISPER_LANGUAGES.find((code) => names.of(code)?.toLowerCase() === wanted) ?? wanted;
}
