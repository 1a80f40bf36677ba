/** Asks for a token where authentication is on and no proxy has signed the person in. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { T } from '../texts.ts';

export function SignIn(): JSX.Element {
  const { client, store, needsToken } = useApp();
  const [token, setToken] = useState('');
  const use = (event: Event): void => {
    event.preventDefault();
    client.useToken(token);
    needsToken.value = false;
    store.retryNow();
  };
  return (
    <form class="panel narrow" onSubmit={use}>
      <h1>{T.signIn}</h1>
      <p>{T.signInWhy}</p>
      <label>
        {T.token}
        <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main">
        {T.useToken}
      </button>
    </form>
  );
}
