/** The same request as programs write it. Pure. */

export const SNIPPETS = ['curl', 'Python', 'TypeScript'] as const;
export type SnippetName = (typeof SNIPPETS)[number];

export interface SnippetFacts {
  /** Such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly model: string;
  readonly prompt: string;
  readonly needsToken: boolean;
}

export function chatSnippet(name: SnippetName, { origin, model, prompt, needsToken }: SnippetFacts): string {
  const [shownModel, content] = [JSON.stringify(model), JSON.stringify(prompt)];
  if (name === 'curl') {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] }).replaceAll("'", String.raw`'\''`);
    const token = needsToken ? ` \\\n  -H "authorization: Bearer $SVC_TOKEN"` : '';
    return `curl ${origin}/v1/chat/completions \\\n  -H 'content-type: application/json'${token} \\\n  -d '${body}'`;
  }
  if (name === 'Python') {
    const key = needsToken ? 'os.environ["SVC_TOKEN"]' : '"none"';
    return `${needsToken ? 'import os\n' : ''}from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1", api_key=${key})\nanswer = client.chat.completions.create(\n    model=${shownModel},\n    messages=[{"role": "user", "content": ${content}}],\n)\nprint(answer.choices[0].message.content)`;
  }
  const key = needsToken ? 'process.env.SVC_TOKEN' : "'none'";
  return `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${origin}/v1', apiKey: ${key} });\nconst answer = await client.chat.completions.create({\n  model: ${shownModel},\n  messages: [{ role: 'user', content: ${content} }],\n});\nconsole.log(answer.choices[0].message.content);`;
}
