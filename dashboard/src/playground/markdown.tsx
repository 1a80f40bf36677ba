/** Renders Markdown as elements. Model output never becomes HTML: HTML is shown as text, and images become links. */
import { lexer, type Token } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { safeLink } from '../decide/untrusted.ts';

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const tokens = useMemo(() => lexer(text), [text]);
  return <div class="markdown">{tokens.map(show)}</div>;
}

function inner(token: Token): ComponentChildren {
  return 'tokens' in token && token.tokens !== undefined ? token.tokens.map(show) : 'text' in token ? token.text : token.raw;
}

const PLAIN = {
  paragraph: 'p',
  strong: 'strong',
  em: 'em',
  del: 'del',
  blockquote: 'blockquote',
} as const;

function show(token: Token, key: number): ComponentChildren {
  switch (token.type) {
    case 'paragraph':
    case 'strong':
    case 'em':
    case 'del':
    case 'blockquote': {
      const Element = PLAIN[token.type];
      return <Element key={key}>{inner(token)}</Element>;
    }
    case 'heading':
      // A heading element would break the heading order of the page.
      return (
        <p key={key} class="heading">
          {inner(token)}
        </p>
      );
    case 'code':
      return (
        <pre key={key} tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      );
    case 'codespan':
      return <code key={key}>{token.text}</code>;
    case 'list':
      return <List key={key} token={token} />;
    case 'link':
    case 'image':
      return <Link key={key} token={token} />;
    case 'table':
      return <Table key={key} token={token} />;
    case 'br':
      return <br key={key} />;
    case 'hr':
      return <hr key={key} />;
    case 'space':
    case 'def':
      return null;
    case 'html':
    case 'tag':
      return token.raw;
    default:
      return inner(token);
  }
}

interface TokenProps {
  readonly token: Token;
}

function List({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'list') return null;
  const items: readonly Token[] = token.items;
  const shown = items.map((item, index) => <li key={index}>{inner(item)}</li>);
  return token.ordered === true ? <ol start={Number(token.start) || 1}>{shown}</ol> : <ul>{shown}</ul>;
}

function Link({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'link' && token.type !== 'image') return null;
  const href = safeLink(String(token.href));
  if (href === undefined) return <>{token.raw}</>;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {token.type === 'image' ? String(token.text || token.href) : inner(token)}
    </a>
  );
}

function Table({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'table') return null;
  const header: readonly Token[] = token.header;
  const rows: readonly (readonly Token[])[] = token.rows;
  return (
    <table>
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index}>{inner(cell)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column}>{inner(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
