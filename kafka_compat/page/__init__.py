"""Web console for the brokers of this process and their cluster, served by the HTTP listener.

Jinja2 renders it on the broker, without JavaScript or external resources (docs/page.md,
docs/design/decisions/0017-page.md). This package is imported if `kafka.compat.http.page.enable` is true.
Jinja2 is imported in a thread once the brokers are serving.

How to add a view
1. Write a module in `views/` with a coroutine `see(visit: Visit) -> Data` that returns JSON-serializable data
   to show, with units in the names. Implement a long operation as a generator (see `long_work`) that yields
   to the event loop, and run it with `visit.finish(steps)`.
2. Write its template in `templates/`. The template extends `base.html` and accesses the data as `it`. All
   output is escaped. Use the filters in `rendering.py`, the macros in `macros.html` (tables that become
   cards on a phone, filters, pagination, tabs, figures), and `listing.py` for long lists. The
   Content-Security-Policy blocks scripts and `style` attributes, so show a share as a `<meter>`.
3. Register it in `views/__init__.py` as a `View` with its path, such as `/topics`. The page is then at
   `/ui/topics`, and its data at `/ui/topics.json`. Names of topics and groups are parameters (`?name=`),
   never parts of the path, because they may contain any character. In templates, `link("/topic",
   name=it.name)` returns the URL. `below` is the view's menu entry. `rendering.py` defines the menu, and the
   tabs of topics and groups. The template is named after the path.
4. Raise `BadCall` for an invalid request, with a status and a text that describes valid values.

How to add an action
1. Write a coroutine `act(visit: Visit) -> Shown | Done`, and register it as an `Action` (POST, with a form or
   a JSON object). `visit.body` contains the fields; form fields are strings. Actions are rejected unless
   `kafka.compat.http.page.write.enable` is true; `visit.may_write` and, in templates, `writes` have its
   value. Show the form only if `writes` is true.
2. Include `{{ form_token() }}` in the form. Without this hidden field, the request is rejected.
3. Return `Done` to redirect a browser to a page, and to send its data to programs; return `Shown` to render a
   template (a dry run).

Authorization
The web console is a client of the brokers, with the principal of `kafka.compat.http.page.principal` and the
address of the browser. `await visit.ask(key, **fields)` sends a Kafka request to a broker of this process,
which handles and authorizes it like a client's request. Use `ask` for all changes and, if possible, queries.
`ask(key, version, broker_id, …)` sends the request to another broker. If that broker is in another process
(see `visit.is_here`), the request has the rights of this broker, so check `visit.rights` first. A view that
reads the brokers' state with `visit.cluster` must either check `visit.rights.may_see_topic(name)` or
`may(operation, type, name)` for all data, and omit data that is not allowed, or call
`visit.rights.require(…)`, which raises BadCall.
"""
